#include <fmt/format.h>

#include "msdbg/follow_report.h"
#include "report/follow_text.h"
#include "report/table.h"

namespace msdbg {

std::string why_report(Session& session, const WhyAnswer& answer, const ReportStyle& style) {
  using follow::Json;
  if (style.format == Format::kJson || style.format == Format::kJsonl) {
    Json evidence = Json::array();
    for (const WhyEvidence& each : answer.evidence)
      evidence.push_back({{"text", each.text}, {"path", each.path.empty() ? Json() : Json(each.path)}});
    const Json out = {{"dump", session.info().source},
                      {"asked", answer.asked},
                      {"kind", why_kind_name(answer.kind)},
                      {"answer", answer.answer},
                      {"tensor", answer.tensor ? follow::place(session, *answer.tensor) : Json()},
                      {"evidence", std::move(evidence)},
                      {"instead", answer.instead},
                      {"next", answer.next.empty() ? Json() : Json(answer.next)}};
    return follow::text(out, style.format == Format::kJson);
  }
  std::string out = painted(printable(answer.answer), Paint::kStrong, style.colour) + "\n";
  if (answer.tensor) {
    out += fmt::format("  tensor    {}, step {}\n", follow::tensor_text(session, *answer.tensor, true), answer.tensor->step);
  }
  for (const WhyEvidence& each : answer.evidence) {
    const std::string path = printable(each.path), text = printable(each.text);
    out += fmt::format("  evidence  {}{}{}\n", text, text.empty() || path.empty() ? "" : ": ", path);
  }
  for (const std::string& name : answer.instead) out += fmt::format("  instead   {}\n", printable(name));
  if (!answer.next.empty()) out += fmt::format("next: {}\n", printable(answer.next));
  return out;
}

}  // namespace msdbg
