#include <fmt/format.h>

#include "msdbg/answers.h"
#include "msdbg/follow_report.h"
#include "report/follow_text.h"
#include "report/table.h"

namespace msdbg {

std::string why_report(Session& session, const WhyAnswer& answer, const ReportStyle& style) {
  if (style.format == Format::kJson) return json_text(why_answer(session, answer));
  if (style.format == Format::kJsonl) return json_line(why_answer(session, answer));
  std::string out = painted(printable(answer.answer), Paint::kStrong, style.colour) + "\n";
  if (answer.tensor) {
    out += fmt::format("  tensor    {}, step {}\n", follow::tensor_text(session, *answer.tensor, style.full_names()), answer.tensor->step);
  }
  for (const WhyEvidence& each : answer.evidence) {
    const std::string path = printable(each.path), text = printable(each.text);
    out += fmt::format("  evidence  {}{}{}\n", text, text.empty() || path.empty() ? "" : ": ", path);
  }
  for (const std::string& name : answer.instead) out += fmt::format("  instead   {}\n", printable(name));
  if (!answer.next.empty()) out += fmt::format("next: {}\n", printable(answer.next));
  return fitted(std::move(out), style);
}

}  // namespace msdbg
