// What the text of an origin says beside the origins: values that were overwritten, infinities that are no fault, health, and what to do next.
#pragma once

#include <string>
#include <string_view>

#include "msdbg/report.h"

namespace msdbg {

inline constexpr std::string_view kOriginIndent = "             ";
/// `  first bad  TEXT`, a line with its word.
std::string origin_line(std::string_view name, std::string_view text);
/// A further line below it.
std::string origin_more(std::string_view text);
/// `Log-op0:output:0`; a parameter without its slot.
std::string origin_name(const Session& session, const TensorId& id, const ReportStyle& style);
/// The search was for NaN or Inf, not for a condition of the user.
bool asks_for_bad_values(const OriginResult& result);

std::string overwritten_text(Session& session, const OriginResult& result, const ReportStyle& style);
std::string put_in_text(Session& session, const OriginResult& result, const ReportStyle& style);
/// The ranks that lack steps of those that were asked for, a line each.
std::string lacking_text(const Session& session, const OriginResult& result);
/// For a result without origins.
std::string healthy_line(Session& session, const OriginResult& result);
/// For a result with origins: the command that shows what broke the first one.
std::string next_text(Session& session, const OriginResult& result, const ReportStyle& style);

}  // namespace msdbg
