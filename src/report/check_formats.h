// The findings of a check in the formats that other programs read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "msdbg/report.h"

namespace msdbg {

/// `max 12.3 > 10; 3 of 8 NaN`: why it hit, in one line.
std::string what_text(const Hit& hit);

std::string check_csv(const Session& session, const CheckResult& result, const ReportStyle& style);
std::string check_markdown(const Session& session, const CheckResult& result, const ReportStyle& style);
std::string check_junit(const Session& session, const CheckResult& result, const ReportStyle& style);
std::string check_sarif(const Session& session, const CheckResult& result, const ReportStyle& style);

/// Pieces that they share.
Standing standing_of(const ReportStyle& style, size_t hit);
/// "" unless suppressed.
std::string reason_of(const ReportStyle& style, size_t hit);
/// What was run, then what else appears in the result; each once.
std::vector<std::string> rules_of(const CheckResult& result, std::span<const std::string> rules_run);
/// What is said about a rule of a rule file or of the catalogue; null for other conditions.
const RuleInfo* rule_info(const CheckResult& result, std::string_view rule);
/// What to do about a finding of that rule; "" when nothing is known.
std::string advice_of(const CheckResult& result, std::string_view rule);
/// `3 findings: 1 new, 2 known, 0 suppressed; 1 listed (--max-hits)`.
std::string counts_text(const CheckResult& result, const ReportStyle& style);
/// `suppression of line 3 matched nothing: TO a/b (reason)`.
std::string unused_text(const Suppression& suppression);
/// `interrupted: 3 of 8 tensors were looked at`.
std::string interrupted_text(const CheckResult& result);

}  // namespace msdbg
