// The hits of a check as a table for people: one line for each, or one for each scope.
#pragma once

#include <string>

#include "msdbg/report.h"

namespace msdbg {

/// A line for each hit; those that other ranks have too share one, and those that follow from a cause are counted.
std::string hit_table(Session& session, const CheckResult& result, const ReportStyle& style);
/// A line for each scope, with its first hit.
std::string hit_groups(const Session& session, const CheckResult& result, const ReportStyle& style);

}  // namespace msdbg
