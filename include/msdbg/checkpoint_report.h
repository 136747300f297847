// Checkpoints as text: the contents of one, the changes between two, the step of a dump that one belongs to.
//
// The sessions' owner thread only. Formats: table, JSON, JSON lines, csv and markdown; all end with a newline. docs/json.md defines
// the JSON keys.
#pragma once

#include <string>
#include <vector>

#include "msdbg/checkpoint.h"
#include "msdbg/report.h"

namespace msdbg {

/// `rows` are the parameters to list.
std::string checkpoint_report(Checkpoint& checkpoint, const std::vector<StatsRow>& rows, const ReportStyle& style);

/// Counts unchanged parameters; the table lists them only if ReportStyle::wide is set, the other formats always.
std::string parameter_diff_report(const ParameterDiff& diff, const ReportStyle& style);

std::string checkpoint_match_report(const CheckpointMatch& match, const ReportStyle& style);

}  // namespace msdbg
