// The document as one HTML file that loads nothing.
#include <fmt/format.h>

#include <algorithm>

#include "msdbg/picture.h"
#include "report/assets.h"
#include "report/document.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

// How much of a table and of a group of pictures is printed; page.css hides the others.
constexpr size_t kPaperRows = 10, kPaperCards = 6;

// Names are long and contain no blanks: allow line breaks after a scope.
std::string breakable(std::string_view text) {
  std::string out;
  for (char c : escaped(text)) {
    out += c;
    if (c == '/') out += "<wbr/>";
  }
  return out;
}

/// Keeps a minus sign with its number.
std::string sentence(std::string_view text) {
  std::string out;
  const std::string clean = escaped(text);
  for (size_t i = 0; i < clean.size();) {
    if (clean.compare(i, 4, "-Inf") == 0) {
      out += "<span class=\"nb\">-Inf</span>";
      i += 4;
    } else {
      out += clean[i++];
    }
  }
  return out;
}

/// Prose. Gaps of several blanks are kept, and a short piece between two gaps, such as `max 0.5`, stays on one line.
std::string prose(std::string_view text) {
  constexpr size_t kShort = 24;
  std::string out;
  while (!text.empty()) {
    const size_t gap = std::min(text.find("  "), text.size()), next = std::min(text.find_first_not_of(' ', gap), text.size());
    const std::string_view piece = text.substr(0, gap);
    const bool whole = text.size() != gap || !out.empty();
    if (whole && piece.size() <= kShort && piece.find(' ') != std::string_view::npos)
      out += fmt::format("<span class=\"nb\">{}</span>", escaped(piece));
    else
      out += sentence(piece);
    if (next > gap) out += "&#8195; ";
    text.remove_prefix(next);
  }
  return out;
}

std::string run_html(const Run& run) {
  const std::string hint = run.hint.empty() || run.hint == run.text ? "" : fmt::format(" title=\"{}\"", escaped(run.hint));
  std::string out;
  switch (run.look) {
    case Look::kPlain:
      out = hint.empty() ? prose(run.text) : fmt::format("<span{}>{}</span>", hint, prose(run.text));
      break;
    case Look::kCode:
      out = fmt::format("<code{}>{}</code>", hint, breakable(run.text));
      break;
    case Look::kStrong:
      out = fmt::format("<b{}>{}</b>", hint, prose(run.text));
      break;
    case Look::kBad:
      out = fmt::format("<span class=\"bad\"{}>{}</span>", hint, prose(run.text));
      break;
    case Look::kMuted:
      out = fmt::format("<span class=\"soft\"{}>{}</span>", hint, prose(run.text));
      break;
  }
  return run.target.empty() ? out : fmt::format("<a href=\"#{}\">{}</a>", escaped(run.target), out);
}

std::string line_html(const Line& line) {
  std::string out;
  for (const Run& run : line) out += run_html(run);
  return out;
}

size_t length_of(const Line& line) {
  size_t length = 0;
  for (const Run& run : line) length += run.text.size();
  return length;
}

/// The policy needs base64, the build provides hexadecimal.
std::string base64_of_hex(std::string_view hex) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i * 8 + k * 6 < bytes.size() * 8 ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

class Html {
 public:
  std::string text(const Document& document) {
    head(document);
    out_ += fmt::format("<body class=\"{}\">\n<a class=\"skip\" href=\"#findings\">Skip to the findings</a>\n",
                        document.broken ? "broken" : "sound");
    // All pictures of the page share the patterns.
    out_ +=
        "<svg class=\"defs\" aria-hidden=\"true\" width=\"0\" height=\"0\"><defs>"
        "<pattern id=\"hatch-up\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\"><rect class=\"hatch-ground\" width=\"4\" "
        "height=\"4\"/>"
        "<path class=\"hatch-line\" d=\"M-1 1l2 -2M0 4l4 -4M3 5l2 -2\"/></pattern>"
        "<pattern id=\"hatch-down\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\"><rect class=\"hatch-ground\" width=\"4\" "
        "height=\"4\"/>"
        "<path class=\"hatch-line\" d=\"M-1 3l2 2M0 0l4 4M3 -1l2 2\"/></pattern></defs></svg>\n";
    out_ += "<div class=\"page\">\n<header class=\"masthead\">\n";
    out_ += fmt::format("<p class=\"subject\"><b>msdbg report</b><span>{}</span></p>\n<h1>{}</h1>\n", breakable(document.subject),
                        line_html(document.verdict));
    for (const Line& remark : document.remarks) out_ += fmt::format("<p class=\"remark\">{}</p>\n", line_html(remark));
    if (!document.glance.empty()) {
      out_ += "<dl class=\"glance\">\n";
      for (const auto& [name, value] : document.glance)
        out_ += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), line_html(value));
      out_ += "</dl>\n";
    }
    add(Facts{document.made});
    out_ += "</header>\n<div class=\"columns\">\n<nav class=\"contents\" aria-label=\"Contents\"><ol>\n";
    for (const Section& section : document.sections)
      out_ += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", escaped(section.id), escaped(section.title));
    out_ += "</ol></nav>\n<main id=\"findings\">\n";
    for (const Section& section : document.sections) {
      out_ += fmt::format("<section id=\"{}\" aria-labelledby=\"{}-title\">\n<h2 id=\"{}-title\">{}</h2>\n", escaped(section.id),
                          escaped(section.id), escaped(section.id), escaped(section.title));
      blocks(section.blocks);
      out_ += "</section>\n";
    }
    out_ += "</main>\n</div>\n<footer>This file loads nothing and can be kept, mailed and printed.</footer>\n</div>\n";
    out_ += fmt::format("<script>{}</script>\n</body>\n</html>\n", script_asset().text);
    return std::move(out_);
  }

 private:
  void head(const Document& document) {
    out_ += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n";
    // No matter what the names in the data contain, only our own style and script run, and nothing is fetched.
    out_ += fmt::format(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; "
        "img-src data:; base-uri 'none'; form-action 'none'\"/>\n",
        base64_of_hex(style_asset().sha256), base64_of_hex(script_asset().sha256));
    out_ += fmt::format(
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<meta name=\"color-scheme\" content=\"light dark\"/>\n"
        "<meta name=\"generator\" content=\"msdbg {}\"/>\n<link rel=\"icon\" "
        "href=\"data:,\"/>\n<title>{}</title>\n<style>{}</style>\n</head>\n",
        kVersion, escaped(document.title), style_asset().text);
  }

  void blocks(const std::vector<Block>& all) {
    for (const Block& one : all) std::visit([&](const auto& block) { add(block); }, one);
  }

  void add(const Heading& block) {
    out_ += fmt::format("<h3{}>{}</h3>\n", block.id.empty() ? "" : fmt::format(" id=\"{}\"", escaped(block.id)), line_html(block.line));
  }

  void add(const Paragraph& block) { out_ += fmt::format("<p>{}</p>\n", line_html(block.line)); }

  void add(const Facts& block) {
    out_ += "<dl class=\"facts\">\n";
    for (const auto& [name, value] : block.rows) out_ += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), line_html(value));
    out_ += "</dl>\n";
  }

  void add(const Sheet& block) {
    const size_t open = block.rows.size() <= block.open + 5 ? block.rows.size() : block.open;
    out_ += block.sorts ? "<div class=\"sheet sorts\">\n" : "<div class=\"sheet\">\n";
    rows(block, 0, open);
    if (open < block.rows.size()) {
      out_ += fmt::format("<details><summary>{} more</summary>\n", block.rows.size() - open);
      rows(block, open, block.rows.size());
      out_ += "</details>\n";
    }
    on_paper(block.rows.size(), kPaperRows);
    out_ += "</div>\n";
  }

  void on_paper(size_t all, size_t printed) {
    if (all > printed) out_ += fmt::format("<p class=\"paper\">{} more are in the file.</p>\n", all - printed);
  }

  // A long cell would squeeze the others to one letter per line.
  static bool is_long(const Sheet& block, size_t column) {
    for (const auto& row : block.rows) {
      if (length_of(row[column]) > 24) return true;
    }
    return false;
  }

  void rows(const Sheet& block, size_t begin, size_t end) {
    std::vector<std::string> kinds;
    for (size_t i = 0; i < block.columns.size(); ++i)
      kinds.emplace_back(block.columns[i].number ? " class=\"n\"" : is_long(block, i) ? " class=\"t\"" : " class=\"s\"");
    // Focusable: the arrow keys can scroll it sideways.
    out_ += fmt::format("<div class=\"box\" role=\"region\" tabindex=\"0\" aria-label=\"{}\"><table><caption>{}</caption><thead><tr>",
                        escaped(block.caption), escaped(block.caption));
    for (const Column& column : block.columns) {
      out_ += fmt::format("<th scope=\"col\"{}{}{}>{}</th>", column.number ? " class=\"n\"" : "",
                          block.sorts ? column.number ? " data-sort=\"number\"" : " data-sort=\"text\"" : "",
                          column.groups ? " data-group=\"\"" : "", escaped(column.title));
    }
    out_ += "</tr></thead>\n<tbody>\n";
    const auto step = std::find_if(block.columns.begin(), block.columns.end(), [](const Column& column) { return column.step; });
    for (size_t i = begin; i < end; ++i) {
      out_ += step == block.columns.end()
                  ? "<tr>"
                  : fmt::format("<tr data-step=\"{}\">", line_html(block.rows[i][static_cast<size_t>(step - block.columns.begin())]));
      for (size_t k = 0; k < block.rows[i].size(); ++k) {
        const Column& column = block.columns[k];
        const std::string title = column.number || column.named ? fmt::format(" data-title=\"{}\"", escaped(column.title)) : "";
        out_ += fmt::format("<td{}{}>{}</td>", kinds[k], title, line_html(block.rows[i][k]));
      }
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
  }

  void add(const Commands& block) {
    out_ += "<ul class=\"commands\">\n";
    for (const auto& [what, command] : block.rows)
      out_ += fmt::format("<li><p>{}</p><div class=\"line\"><pre>{}</pre></div></li>\n", escaped(what), escaped(command));
    out_ += "</ul>\n";
  }

  void add(const Way& block) {
    out_ += "<ol class=\"way\">\n";
    for (const Way::Stop& stop : block.stops)
      out_ += fmt::format("<li{}>{}</li>\n", stop.broken ? "" : " class=\"sound\"", line_html(stop.line));
    out_ += "</ol>\n";
  }

  void add(const Listing& block) {
    out_ += fmt::format(
        "<h3><code>{}</code></h3>\n<div class=\"listing\"><table><caption>Lines of {}</caption>\n<tbody>\n", breakable(block.file),
        escaped(block.file));
    for (const Listing::Row& row : block.rows) {
      out_ += fmt::format("<tr{}><td class=\"n\">{}</td><td>{}</td><td class=\"r\">{}</td></tr>\n", row.marked ? " class=\"hit\"" : "",
                          row.line > 0 ? std::to_string(row.line) : "", escaped(row.code), line_html(row.remark));
    }
    out_ += "</tbody></table></div>\n";
  }

  void add(const Figure& block) {
    out_ += block.grows ? "<figure class=\"grows\">\n" : "<figure>\n";
    if (block.wide) out_ += "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Picture\">\n";
    out_ += block.svg;
    if (block.wide) out_ += "</div>\n";
    if (!block.caption.empty()) out_ += fmt::format("<figcaption>{}</figcaption>\n", line_html(block.caption));
    out_ += "</figure>\n";
  }

  void add(const Cards& block) {
    out_ += fmt::format("<div class=\"cards{}\">\n", block.small ? " small" : "");
    for (const Card& card : block.cards) {
      out_ += fmt::format("<article class=\"card\"{}{}>\n", card.id.empty() ? "" : fmt::format(" id=\"{}\"", escaped(card.id)),
                          card.step ? fmt::format(" data-step=\"{}\"", *card.step) : "");
      if (!card.role.empty()) out_ += fmt::format("<p class=\"role\">{}</p>\n", escaped(card.role));
      out_ += fmt::format("<h3>{}</h3>\n", line_html(card.title));
      for (const Line& line : card.lines) out_ += fmt::format("<p>{}</p>\n", line_html(line));
      if (!card.figures.empty()) out_ += "<div class=\"figures\">\n";
      for (const Figure& figure : card.figures) add(figure);
      out_ += card.figures.empty() ? "</article>\n" : "</div>\n</article>\n";
    }
    out_ += "</div>\n";
    on_paper(block.cards.size(), kPaperCards);
  }

  void add(const OfStep& block) {
    out_ += fmt::format("<div class=\"part\" data-step=\"{}\">\n", block.step);
    blocks(block.blocks);
    out_ += "</div>\n";
  }

  void add(const Fold& block) {
    out_ += fmt::format("<details><summary>{}</summary>\n", escaped(block.title));
    blocks(block.blocks);
    out_ += "</details>\n";
  }

  std::string out_;
};

}  // namespace

std::string escaped(std::string_view text) { return xml_text(printable(text)); }

std::string html(const Document& document) { return Html().text(document); }

}  // namespace msdbg::page
