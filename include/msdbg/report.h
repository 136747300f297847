// Results as text: tables for people, JSON and JSON lines for programs. Prints nothing.
//
// Any thread that may use the session. docs/json.md defines the JSON keys and their order.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/analysis.h"
#include "msdbg/check.h"
#include "msdbg/diff.h"
#include "msdbg/gate.h"
#include "msdbg/series.h"

namespace msdbg {

/// The last four are only for check.
enum class Format : uint8_t { kTable, kJson, kJsonl, kCsv, kMarkdown, kJunit, kSarif };
Result<Format> parse_format(std::string_view text);

/// Where a report is read. Suggested commands are written as they are typed there. In a script they have the shell form, without
/// options that would show more.
enum class Place : uint8_t { kShell, kPrompt, kScript };

/// A command on the dump of a session: its name and the words after the dump, unquoted.
struct Hint {
  std::string_view command;
  std::vector<std::string> words;
};
/// `msdbg show dumps/lenet Log-op0 --step 0` in a shell; `show Log-op0 --step 0` at the prompt, and for a training, which has no
/// other form.
std::string hint_text(const Session& session, const Hint& hint, Place place);

struct ReportStyle {
  static constexpr size_t kAnyWidth = SIZE_MAX;
  Format format = Format::kTable;
  bool colour = false;
  bool wide = false;       ///< full names, all columns
  bool group = false;      ///< check: hits grouped by scope
  bool all = false;        ///< check: also the hits that follow from others
  size_t width = kAnyWidth;  ///< columns of the terminal; kAnyWidth for a pipe or a file, where nothing is shortened
  Place place = Place::kShell;
  bool numbered = false;   ///< tables of hits and tensors count their rows, for `#3` at the prompt
  std::string rules;       ///< check: what was checked, for the line that says clean, e.g. "the default rules"
  std::string tensors = "output and parameter";  ///< check: the kinds of tensors that were checked, for the same line
  const Gate* gate = nullptr;                    ///< check: new, known and suppressed findings; without it everything is new
  std::vector<std::string> rules_run;            ///< check: ids of the rules that ran, for formats that also list rules without a finding
  int exit_status = 0;                           ///< check: the program's exit status, for formats that contain it

  /// The maximum width of a line.
  size_t columns() const { return wide ? kAnyWidth : width; }
  bool full_names() const { return columns() == kAnyWidth; }
};

/// The findings of `msdbg check`. Ends with a newline, like all of the following.
std::string check_report(Session& session, const CheckResult& result, const ReportStyle& style);
/// What its hits follow from, the earliest first, as in check_report(): `169 of 170 findings follow from Div-op0, step 0: division by 0`.
/// Without causes, why they were not looked for, where that is worth telling.
std::vector<std::string> cause_lines(const Session& session, const CheckResult& result);
/// Its hits without those that follow from another one, as indexes.
std::vector<size_t> open_hits(const CheckResult& result);
std::string origin_report(Session& session, const OriginResult& result, const ReportStyle& style);
/// The result of `msdbg diff`; all formats but sarif.
std::string diff_report(Session& a, Session& b, const DiffResult& result, const ReportStyle& style);
/// The rows of its table, as indexes of DiffResult::tensors: culprits and the first others that differ; without any, the largest errors
/// within tolerance.
std::vector<size_t> diff_rows(const DiffResult& result, const ReportStyle& style);
/// The result of `msdbg diff --loss`; table, json, jsonl (a line per step) and csv.
std::string series_report(const Series& a, const Series& b, const SeriesComparison& result, const ReportStyle& style);

struct SettingsResult;  // msdbg/settings.h

/// `asked`: the steps and ranks of the request. Without it, the report has no table of steps and ranks.
std::string stats_report(Session& session, const std::vector<StatsRow>& rows, const ReportStyle& style, const TensorQuery* asked = nullptr);
/// Gives row after row, then nullopt.
using StatsRows = std::function<std::optional<StatsRow>()>;
/// Takes the text of a result piece by piece.
using TextSink = std::function<Status(std::string_view text)>;
/// The same piece by piece. A table keeps its lines, and of several ranks the rows; other formats keep nothing. Error: that of `write`.
Status stream_stats(Session& session, const StatsRows& rows, const ReportStyle& style, const TensorQuery* asked, const TextSink& write);
/// The rows that the lines of its table begin with, as indexes: a line shows what several ranks have in common.
std::vector<size_t> stats_rows(Session& session, const std::vector<StatsRow>& rows, const ReportStyle& style);
/// In the table, nodes that several ranks share have one line, unless `each` node must have its own.
std::string nodes_report(Session& session, const std::vector<NodeRef>& nodes, const ReportStyle& style, bool each = false);
/// The same, without holding it.
Status stream_nodes(Session& session, const std::vector<NodeRef>& nodes, const ReportStyle& style, bool each, const TextSink& write);
/// The nodes that start a line of that table, as indices.
std::vector<size_t> nodes_rows(Session& session, const std::vector<NodeRef>& nodes);
/// `settings`: the hyper-parameters, for --values; null: they were not read.
std::string doctor_report(Session& session, const SessionReport& report, const ReportStyle& style,
                          const SettingsResult* settings = nullptr);

// ---- one tensor, for people ------------------------------------------------------------------------------------------

/// `192 elements, 88 finite: min -7.276  max -2.644  mean -4.14  std 0.857   104 -Inf`
std::string stats_line(const Stats& stats);
/// `104 of 192 -Inf, 1 NaN`: only non-finite values; "" if all are finite.
std::string nonfinite_text(const Stats& stats);
/// Elements as a table with head and tail of long axes; at most `max_rows` lines.
std::string elements_table(const TensorView& view, size_t max_rows = 20, size_t width = 100);

/// A short node name for use in the next command: the unique suffix of the full name.
std::string short_name(const Session& session, const TensorId& id);
std::string short_name(const Session& session, std::string_view full_name);
/// The same, or ShortNames::elided() if that is long.
std::string elided_name(const Session& session, std::string_view full_name);

}  // namespace msdbg
