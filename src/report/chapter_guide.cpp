// The guide's questions, with the answers from the data or the user.
#include "report/chapters.h"

namespace msdbg::page {

std::optional<Section> guide_chapter(Context& context) {
  const std::vector<PageRemark>& remarks = context.options.guide;
  if (remarks.empty()) return std::nullopt;
  Sheet sheet;
  sheet.caption = "What the guide asked";
  sheet.columns = {{"about"}, {"what was found"}, {"what to do"}};
  sheet.open = remarks.size();
  std::string_view before;
  for (const PageRemark& remark : remarks) {
    Run what = remark.kind == "finding"   ? bad(remark.text)
               : remark.kind == "unknown" ? muted("open: " + remark.text)
                                          : plain(remark.text);
    sheet.rows.push_back({{plain(remark.chapter == before ? "" : remark.chapter)}, {std::move(what)}, {plain(remark.next)}});
    before = remark.chapter;
  }
  Section section{"guide", "What the guide asked", {}};
  section.blocks.push_back(std::move(sheet));
  return section;
}

}  // namespace msdbg::page
