// The document as Markdown: pictures become lines of characters.
#include <fmt/format.h>

#include "msdbg/base.h"
#include "report/document.h"

namespace msdbg::page {
namespace {

constexpr size_t kMostRows = 60;

/// Text shown literally, also in a table.
std::string literal(std::string_view text) {
  std::string out;
  for (char c : printable(text)) {
    if (std::string_view("\\`*_[]<>|#~&").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// A code span: the fence is longer than any run of backticks inside. In a table a `|` would end the cell; elsewhere its backslash
/// would be visible.
std::string code_span(std::string_view text, bool in_table) {
  std::string body;
  size_t run = 0, longest = 0;
  for (char c : printable(text)) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (c == '|' && in_table) body += '\\';
    body += c;
  }
  if (body.empty()) return "";
  const std::string fence(longest + 1, '`');
  const bool pad = body.front() == '`' || body.back() == '`';
  return fence + (pad ? " " : "") + body + (pad ? " " : "") + fence;
}

/// Blanks must be outside the marks, or Markdown does not recognize them.
std::string emphasised(std::string_view text) {
  const std::string_view inner = trim(text);
  if (inner.empty()) return std::string(text);
  const size_t before = static_cast<size_t>(inner.data() - text.data());
  return fmt::format("{}**{}**{}", text.substr(0, before), literal(inner), text.substr(before + inner.size()));
}

std::string run_text(const Run& run, bool in_table) {
  switch (run.look) {
    case Look::kCode:
      return code_span(run.text, in_table);
    case Look::kStrong:
    case Look::kBad:
      return emphasised(run.text);
    default:
      return literal(run.text);
  }
}

std::string line_text(const Line& line, bool in_table = false) {
  std::string out;
  for (const Run& run : line) out += run_text(run, in_table);
  return out;
}

std::string plain_text(const Line& line) {
  std::string out;
  for (const Run& run : line) out += printable(run.text);
  return out;
}

class Markdown {
 public:
  std::string text(const Document& document) {
    out_ = fmt::format("# {}\n", line_text(document.verdict));
    for (const Line& remark : document.remarks) out_ += fmt::format("\n{}\n", line_text(remark));
    if (!document.glance.empty()) out_ += '\n';
    for (const auto& [name, value] : document.glance) out_ += fmt::format("- {}: {}\n", literal(name), line_text(value));
    out_ += '\n';
    for (const auto& [name, value] : document.made) out_ += fmt::format("- {}: {}\n", literal(name), line_text(value));
    for (const Section& section : document.sections) {
      out_ += fmt::format("\n## {}\n", literal(section.title));
      blocks(section.blocks);
    }
    return std::move(out_);
  }

 private:
  void blocks(const std::vector<Block>& all) {
    for (const Block& one : all) {
      out_ += '\n';
      std::visit([&](const auto& block) { add(block); }, one);
    }
  }

  void fenced(const std::string& body) {
    std::string fence = "```";
    while (body.find(fence) != std::string::npos) fence += '`';
    out_ += fmt::format("{}text\n{}{}{}\n", fence, body, body.ends_with('\n') ? "" : "\n", fence);
  }

  void add(const Heading& block) { out_ += fmt::format("### {}\n", line_text(block.line)); }

  void add(const Paragraph& block) { out_ += line_text(block.line) + "\n"; }

  void add(const Facts& block) {
    for (const auto& [name, value] : block.rows) out_ += fmt::format("- {}: {}\n", literal(name), line_text(value));
  }

  void add(const Sheet& block) {
    std::string titles = "|", marks = "|";
    for (const Column& column : block.columns) {
      titles += fmt::format(" {} |", literal(column.title));
      marks += column.number ? "--:|" : "---|";
    }
    out_ += titles + "\n" + marks + "\n";
    const size_t shown = std::min(block.rows.size(), std::max(block.open, kMostRows));
    for (size_t i = 0; i < shown; ++i) {
      out_ += '|';
      for (const Line& cell : block.rows[i]) out_ += fmt::format(" {} |", line_text(cell, true));
      out_ += '\n';
    }
    if (shown < block.rows.size()) out_ += fmt::format("\nand {} more\n", block.rows.size() - shown);
  }

  void add(const Commands& block) {
    std::string body;
    for (const auto& [what, command] : block.rows) body += fmt::format("# {}\n{}\n", printable(what), printable(command));
    fenced(body);
  }

  void add(const Way& block) {
    for (size_t i = 0; i < block.stops.size(); ++i) out_ += fmt::format("{}. {}\n", i + 1, line_text(block.stops[i].line));
  }

  void add(const Listing& block) {
    out_ += code_span(block.file, false) + "\n\n";
    std::string body;
    for (const Listing::Row& row : block.rows) {
      const std::string remark = plain_text(row.remark);
      body += fmt::format("{} {:>5}  {}{}{}\n", row.marked ? '>' : ' ', row.line > 0 ? std::to_string(row.line) : "", printable(row.code),
                          remark.empty() ? "" : "    # ", remark);
    }
    fenced(body);
  }

  void add(const Figure& block) {
    if (!block.text.empty()) fenced(block.text);
    if (!block.caption.empty()) out_ += fmt::format("{}{}\n", block.text.empty() ? "" : "\n", line_text(block.caption));
  }

  void add(const Cards& block) {
    if (block.small) {
      small(block);
      return;
    }
    bool first = true;
    for (const Card& card : block.cards) {
      out_ += fmt::format("{}### {}\n", first ? "" : "\n", line_text(card.title));
      first = false;
      if (!card.role.empty()) out_ += fmt::format("\n{}\n", literal(card.role));
      for (const Line& line : card.lines) out_ += fmt::format("\n{}\n", line_text(line));
      for (const Figure& figure : card.figures) {
        out_ += '\n';
        add(figure);
      }
    }
  }

  /// One line each: name, curve, summary.
  void small(const Cards& block) {
    out_ += "| | | |\n|---|---|---|\n";
    for (const Card& card : block.cards) {
      std::string curve, caption;
      for (const Figure& figure : card.figures) {
        curve += figure.text;
        caption += plain_text(figure.caption);
      }
      std::erase(curve, '\n');
      out_ += fmt::format("| {} | {} | {} |\n", line_text(card.title, true), code_span(curve, true), literal(caption));
    }
  }

  void add(const Fold& block) {
    // `<details>` works on GitHub and GitLab; elsewhere its content simply follows.
    out_ += fmt::format("<details><summary>{}</summary>\n", escaped(block.title));
    blocks(block.blocks);
    out_ += "\n</details>\n";
  }

  void add(const OfStep& block) {
    for (const Block& one : block.blocks) {
      if (&one != &block.blocks.front()) out_ += '\n';
      std::visit([&](const auto& inner) { add(inner); }, one);
    }
  }

  std::string out_;
};

}  // namespace

std::string markdown(const Document& document) { return Markdown().text(document); }

}  // namespace msdbg::page
