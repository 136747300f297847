// The user's source lines, with the findings next to them.
#include <fmt/format.h>

#include <map>
#include <set>

#include "msdbg/follow_report.h"
#include "report/chapters.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kContext = 2, kMostMarked = 150;

bool is_marked(const SourceRow& row) { return !row.hits.empty(); }

Line remark_of(Context& context, const SourceRow& row, const Answer& said) {
  Line remark;
  for (const Answer& hit : said["hits"]) {
    if (!remark.empty()) remark.push_back(plain("  "));
    remark.push_back(bad(text_at(hit, "abbr")));
    remark.push_back(plain(fmt::format(" {}, from step {}", counted(hit["count"], "finding"), hit["first_step"].get<int64_t>())));
  }
  if (row.worst_tensor && is_marked(row))
    remark.push_back(muted(fmt::format("  worst {}: {}", context.tensor_text(*row.worst_tensor), text_at(said["worst"], "message"))));
  if (said["differs"] == true) remark.push_back(muted("  recorded otherwise: " + text_at(said, "recorded_code")));
  return remark;
}

/// `said`: its entry in the answer, which has the lines with operators.
Listing listing_of(Context& context, const SourceFile& file, const Answer& said) {
  std::map<int, const Answer*> lines;
  for (const Answer& line : said["lines"]) lines[line["line"]] = &line;
  Listing listing;
  listing.file = file.path;
  std::set<size_t> shown;
  size_t marked = 0;
  for (size_t i = 0; i < file.rows.size(); ++i) {
    if (!is_marked(file.rows[i]) || ++marked > kMostMarked) continue;
    for (size_t k = i >= kContext ? i - kContext : 0; k <= i + kContext && k < file.rows.size(); ++k) shown.insert(k);
  }
  std::optional<size_t> before;
  for (size_t i : shown) {
    const SourceRow& row = file.rows[i];
    if (before && (i != *before + 1 || row.line != file.rows[*before].line + 1)) listing.rows.push_back({0, "...", {}, false});
    before = i;
    std::string text;
    for (char c : row.code) text += c == '\t' ? std::string("    ") : std::string(1, c);
    const auto line = lines.find(row.line);
    Line remark = line == lines.end() ? Line{} : remark_of(context, row, *line->second);
    listing.rows.push_back({row.line, std::move(text), std::move(remark), is_marked(row)});
  }
  if (marked > kMostMarked) listing.rows.push_back({0, fmt::format("... {} more lines with findings", marked - kMostMarked), {}, false});
  return listing;
}

}  // namespace

std::optional<Section> source_chapter(Context& context) {
  if (context.input.check == nullptr || context.input.check->hits.empty()) return std::nullopt;
  const auto files = annotate_source(context.session, *context.input.check);
  if (!files) return std::nullopt;
  Section section{"source", "Source lines", {}};
  const Answer answer = lines_answer(context.session, *files, *context.input.check);
  for (size_t i = 0; i < files->size(); ++i) {
    const SourceFile& file = (*files)[i];
    Listing listing = listing_of(context, file, answer["files"][i]);
    if (listing.rows.empty()) continue;
    if (!section.blocks.empty()) section.blocks.push_back(Paragraph{});
    section.blocks.push_back(std::move(listing));
    if (!file.note.empty()) section.blocks.push_back(Paragraph{{muted(file.note)}});
  }
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace msdbg::page
