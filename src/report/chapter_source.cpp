// The user's source lines, with the findings next to them.
#include <fmt/format.h>

#include <set>

#include "msdbg/follow_report.h"
#include "report/chapters.h"
#include "report/table.h"

namespace msdbg::page {
namespace {

constexpr size_t kContext = 2, kMostMarked = 150;

bool is_marked(const SourceRow& row) { return !row.hits.empty(); }

Listing listing_of(Context& context, const SourceFile& file) {
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
    Line remark;
    for (const SourceHit& hit : row.hits) {
      if (!remark.empty()) remark.push_back(plain("  "));
      remark.push_back(bad(hit.abbr));
      remark.push_back(plain(fmt::format(" {}, from step {}", counted(hit.count, "finding"), hit.first_step)));
    }
    if (row.worst && row.worst_tensor && is_marked(row)) {
      const std::string what = nonfinite_text(*row.worst);
      remark.push_back(
          muted(fmt::format("  worst {}: {}", context.tensor_text(*row.worst_tensor), what.empty() ? stats_line(*row.worst) : what)));
    }
    if (row.differs) remark.push_back(muted("  recorded otherwise: " + row.recorded_code));
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
  Section section{"source", "The lines of the program", {}};
  for (const SourceFile& file : *files) {
    Listing listing = listing_of(context, file);
    if (listing.rows.empty()) continue;
    if (!section.blocks.empty()) section.blocks.push_back(Paragraph{});
    section.blocks.push_back(std::move(listing));
    if (!file.note.empty()) section.blocks.push_back(Paragraph{{muted(file.note)}});
  }
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace msdbg::page
