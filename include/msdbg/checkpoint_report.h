// Checkpoints as text: what is in one, what changed between two, which step of a dump one belongs to.
//
// The sessions' owner thread only. Formats: table, JSON, JSON lines, csv and markdown; all end with a newline. JSON keys
// are those of docs/checkpoint.md.
#pragma once

#include <string>
#include <vector>

#include "msdbg/checkpoint.h"
#include "msdbg/report.h"

namespace msdbg {

/// `rows` are the parameters to list.
std::string checkpoint_report(Checkpoint& checkpoint, const std::vector<StatsRow>& rows, const ReportStyle& style);

/// Unchanged parameters are counted; the table lists them when ReportStyle::wide is set, the other formats always.
std::string parameter_diff_report(const ParameterDiff& diff, const ReportStyle& style);

std::string checkpoint_match_report(const CheckpointMatch& match, const ReportStyle& style);

}  // namespace msdbg
