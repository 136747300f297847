// The operators that the hardware's overflow detector recorded, in execution order, as a table.
#pragma once

#include <span>
#include <string>

#include "msdbg/report.h"

namespace msdbg {

/// "" without records.
std::string overflow_table(const Session& session, std::span<const OverflowRecord> records, const ReportStyle& style);

}  // namespace msdbg
