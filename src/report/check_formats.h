// The findings of a check in the formats that other programs read.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "msdbg/report.h"

namespace msdbg {

/// `max 12.3 > 10; 3 of 8 NaN`: the reason for the hit, in one line.
std::string what_text(const Hit& hit);

std::string check_csv(const Session& session, const CheckResult& result, const ReportStyle& style);
std::string check_markdown(const Session& session, const CheckResult& result, const ReportStyle& style);
std::string check_junit(const Session& session, const CheckResult& result, const ReportStyle& style);
std::string check_sarif(const Session& session, const CheckResult& result, const ReportStyle& style);

/// Shared by the formats.
/// Of the earliest step what the others follow from, whatever its rank, or the first. Needs a hit.
const Hit& earliest_hit(const CheckResult& result);
/// `169 of 170 findings follow from Div-op0, step 0, hold.py:44: division by 0`.
std::string follow_text(const Session& session, const Cause& cause);
/// `Inf that the program put in; what follows absorbed it: masked_fill-op0 (input_args.2 = -Infinity)`.
std::string explained_text(const Session& session, const Explained& each);
/// `division by 0 (104 zeros in input:1)`.
std::string why_text(const Cause& cause);
/// True where the cause says something about more than its one finding, or why it came about.
bool is_worth_telling(const Cause& cause);
/// A finding that is not shown, because it follows from a cause that is.
std::vector<bool> folded_hits(const CheckResult& result, const ReportStyle& style);
GateStatus gate_status_of(const ReportStyle& style, size_t hit);
/// "" unless suppressed.
std::string reason_of(const ReportStyle& style, size_t hit);
/// The rules that ran, then any others in the result; each once.
std::vector<std::string> rules_of(const CheckResult& result, std::span<const std::string> rules_run);
/// The description of a rule from a rule file or the catalogue; null for other conditions.
const RuleInfo* rule_info(const CheckResult& result, std::string_view rule);
/// What to do about a finding of that rule; "" if unknown.
std::string advice_of(const CheckResult& result, std::string_view rule);
/// `3 findings: 1 new, 2 known, 0 suppressed; 1 listed (--max-hits)`.
std::string counts_text(const CheckResult& result, const ReportStyle& style);
/// `suppression of line 3 matched nothing: TO a/b (reason)`.
std::string unused_text(const Suppression& suppression);
/// `interrupted: 3 of 8 tensors were checked`.
std::string interrupted_text(const CheckResult& result);

}  // namespace msdbg
