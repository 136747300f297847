// The guide's questions, with the answers from the data or the user.
#include "report/chapters.h"

namespace msdbg::page {

std::optional<Section> guide_chapter(Context& context) {
  const std::vector<GuideEntry>& entries = context.options.guide;
  if (entries.empty()) return std::nullopt;
  Sheet sheet;
  sheet.caption = "What the guide asked";
  sheet.columns = {{"about"}, {"what was found"}, {"what to do"}};
  sheet.open = entries.size();
  std::string_view before;
  for (const GuideEntry& entry : entries) {
    Run what = entry.kind == "finding"   ? bad(entry.text)
               : entry.kind == "unknown" ? muted("open: " + entry.text)
                                         : plain(entry.text);
    Line todo{plain(entry.next)};
    if (!entry.command.empty()) todo.insert(todo.end(), {plain(entry.next.empty() ? "" : "  "), code(entry.command)});
    sheet.rows.push_back({{plain(entry.chapter == before ? "" : entry.chapter)}, {std::move(what)}, std::move(todo)});
    before = entry.chapter;
  }
  Section section{"guide", "What the guide asked", {}};
  section.blocks.push_back(std::move(sheet));
  return section;
}

}  // namespace msdbg::page
