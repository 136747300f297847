// The result of a comparison, in formats for programs.
#pragma once

#include <string>

#include "msdbg/report.h"

namespace msdbg {

std::string diff_csv(Session& a, Session& b, const DiffResult& result);
std::string diff_markdown(Session& a, Session& b, const DiffResult& result);
std::string diff_junit(Session& a, Session& b, const DiffResult& result);
std::string diff_sarif(Session& a, Session& b, const DiffResult& result);

// Shared with the table:

/// Without elements: "max 4.1 against 2.9, NaN only in A", the statistics that differ; "other checksum" in front.
std::string diff_facts(const TensorDiff& entry);

/// `different: 41 of 88 tensors, first at step 0 NODE:output:0`, on one line with full names.
std::string diff_verdict(Session& a, Session& b, const DiffResult& result);
/// `max error 0.123 at [2,5] (0.5 against 0.6), 12.5 % within tolerance, 3 NaN on one side only`.
std::string diff_what(const TensorDiff& entry);
/// The meaning of the role for this tensor, as a sentence.
std::string diff_why(const TensorDiff& entry, NodeKind kind);
/// A share for people: anything less than everything never reads "100 %".
std::string diff_percent(double share);
/// Entries that were not compared: reason -> entries, in order of appearance.
std::vector<std::pair<std::string, std::vector<const TensorDiff*>>> diff_uncompared(const DiffResult& result);

}  // namespace msdbg
