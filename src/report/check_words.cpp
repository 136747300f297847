// Why a hit is one, in one line.
#include <fmt/format.h>

#include <algorithm>

#include "report/check_formats.h"
#include "report/table.h"

namespace msdbg {
namespace {

/// `max_gt` -> `max 12.3 > 10`; conditions of old releases carry the statistic in their own name.
std::string param_text(const Hit& hit, const ParamResult& param) {
  const std::string_view name = param.name == "param" ? std::string_view(hit.rule) : std::string_view(param.name);
  static constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {"_gt", ">"}, {"_lt", "<"}, {"_ge", ">="}, {"_le", "<="}};
  for (const auto& [suffix, sign] : kSigns) {
    if (!name.ends_with(suffix)) continue;
    const std::string_view what = name.substr(0, name.size() - suffix.size());
    const std::string actual = param.actual ? format_short(*param.actual) : "?";
    return fmt::format("{} {} {} {}", what, actual, sign, format_short(param.threshold));
  }
  if (param.name == "rtol") return fmt::format("unchanged within rtol {}", format_short(param.threshold));
  return fmt::format("{} {}", name, format_short(param.threshold));
}

}  // namespace

std::string what_text(const Hit& hit) {
  std::string out;
  auto add = [&](const std::string& part) {
    if (part.empty()) return;
    if (!out.empty()) out += "; ";
    out += part;
  };
  for (const ParamResult& param : hit.params) {
    // The tolerances of weight_not_changed decide together; none of them hits by itself.
    if (param.hit || param.name == "rtol") add(param_text(hit, param));
  }
  // A message says in words what the other fields hold.
  const auto message = std::find_if(hit.details.begin(), hit.details.end(), [](const auto& detail) { return detail.first == "message"; });
  if (message != hit.details.end()) {
    add(printable(message->second));
  } else {
    for (const auto& [name, value] : hit.details) add(fmt::format("{} {}", printable(name), printable(value)));
  }
  if (!hit.before_update) add(nonfinite_text(hit.stats));
  // An expression joined by `and` has no single value to show.
  if (out.empty() && hit.info) out = printable(hit.info->summary);
  return out;
}

}  // namespace msdbg
