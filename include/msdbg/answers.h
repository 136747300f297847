// Results as trees of named values: the one source of JSON, JSON lines, CSV and the objects that Lua gets. docs/json.md lists the keys.
//
// A number may be NaN or infinite. null: not computed, not known, or there is no such value. Any thread that may use the session.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/checkpoint.h"
#include "msdbg/follow_report.h"
#include "msdbg/guide.h"
#include "msdbg/report.h"

namespace msdbg {

/// Keys keep the order in which they were added.
using Answer = nlohmann::ordered_json;

struct RankGrid;  // msdbg/rank_report.h

/// A list of an answer, and its key there.
struct AnswerRows {
  std::string_view key;
  Answer rows = Answer::array();
};

// ---- text ------------------------------------------------------------------------------------------------------------

/// One object, indented. NaN and infinities become the strings "NaN", "Infinity", "-Infinity"; the text is always valid UTF-8.
std::string json_text(const Answer& answer);
/// The same on one line.
std::string json_line(const Answer& answer);
/// The elements of the list under `entries`, one a line, then `{"summary": ...}` with everything else.
std::string json_lines(const Answer& answer, std::string_view entries);

struct CsvColumn {
  std::string_view title;
  std::string_view path;  ///< keys below a row, joined with dots: stats.count
};
/// RFC 4180: the titles, then a line for each element of the list `rows`. What is null or missing is an empty field; control
/// characters are escaped.
std::string csv_text(std::span<const CsvColumn> columns, const Answer& rows);
/// The same rows as a Markdown table; numbers have four significant digits.
std::string markdown_table(std::span<const CsvColumn> columns, const Answer& rows);

/// An answer with a long list, as text in any format but a table, without holding the list. Each call returns the next piece.
class RowWriter {
 public:
  /// `head`: what comes before the list `key`. `columns`: for CSV and Markdown, which hold nothing else.
  RowWriter(Format format, Answer head, std::string key, std::span<const CsvColumn> columns);
  std::string add(const Answer& row);
  /// `rest`: what comes after the list.
  std::string finish(const Answer& rest = Answer::object());

 private:
  std::string start();

  const Format format_;
  Answer head_;
  const std::string key_;
  const std::span<const CsvColumn> columns_;
  bool started_ = false;
  size_t titles_ = 0;  ///< size of the lines with the titles of the columns
};

// ---- parts that several answers share --------------------------------------------------------------------------------

/// A whole number where it is one, as counts are; null for nullopt.
Answer number_answer(const std::optional<double>& value);
/// null for an empty text.
Answer text_answer(std::string_view text);
Answer stats_answer(const Stats& stats, std::span<const int64_t> shape);
/// The shape, which first_bad needs, is that of the tensor; null for nullopt.
Answer stats_answer(Session& session, const std::optional<Stats>& stats, const std::optional<TensorId>& id);
/// Innermost frame first.
Answer stack_answer(const Node& node);
/// The line of the user's program that made the node, {file, line}; null when unknown.
Answer source_answer(const Node& node);
/// rank, graph, graph_id, step, execution, node, op, slot.
Answer place_answer(const Session& session, const TensorId& id);
/// A kernel that overflowed: its place, `task`, `stream`, `unit`; without a dumped value, `node` is null.
Answer overflow_answer(const Session& session, const OverflowRecord& record);
/// A value that was overwritten between two calls: its place, `before`, `message` ("max 3, min 1 instead of ..."), `reason`.
Answer overwritten_answer(Session& session, const Overwritten& entry);
std::string overwritten_values(Session& session, const Overwritten& entry);
Answer coverage_answer(const Coverage& coverage);
Answer not_checked_answer(const Session& session, const NotChecked& entry);

// ---- answers ---------------------------------------------------------------------------------------------------------

/// `Div-op0, step 0, hold.py:44: division by 0`, on one line.
std::string cause_sentence(const Session& session, const Cause& cause);
Answer cause_answer(const Session& session, const Cause& cause);
Answer hit_answer(const Session& session, const Hit& hit);
/// check_answer() without its lists `hits` and `not_checked`.
Answer check_summary(const Session& session, const CheckResult& result, const Gate* gate = nullptr);
/// Without `gate` no hit has a status.
Answer check_answer(const Session& session, const CheckResult& result, const Gate* gate = nullptr);
/// An entry of `origins`; `order` counts those of its step from 1.
Answer origin_entry_answer(Session& session, const Origin& origin, const std::vector<int>& ranks, size_t order);
Answer origin_answer(Session& session, const OriginResult& result);
/// How far apart two tensors are.
Answer measures_answer(const Comparison& measures, const Shape& shape);
Answer diff_entry_answer(Session& a, Session& b, const TensorDiff& entry);
Answer diff_answer(Session& a, Session& b, const DiffResult& result);
/// `rows` are the parameters to list.
Answer checkpoint_answer(Checkpoint& checkpoint, std::span<const StatsRow> rows);
Answer parameter_diff_answer(const ParameterDiff& diff);
Answer checkpoint_match_answer(const CheckpointMatch& match);
/// The steps are those that both have.
Answer series_answer(const Series& a, const Series& b, const SeriesComparison& result);
Answer node_answer(const NodeRef& node);
Answer tensor_answer(const Session& session, const StatsRow& row);
/// What is known about a dump without reading its tensors.
Answer session_answer(const Session& session);
/// `tensors`: tensors_grid() of the session.
Answer doctor_answer(const Session& session, const SessionReport& report, const RankGrid& tensors);
Answer bisect_answer(Session& session, const BisectResult& result);
/// An entry of `tensors`: one line of the trend.
Answer trend_entry_answer(const Session& session, const TrendResult& result, const TrendLine& line);
Answer trend_answer(Session& session, const TrendResult& result);
Answer propagation_answer(Session& session, const Propagation& result);
Answer why_answer(Session& session, const WhyAnswer& answer);
Answer guide_answer(const Session& session, const GuideResult& result);
/// Program lines with what was found on them.
Answer lines_answer(Session& session, std::span<const SourceFile> files, const CheckResult& result);

}  // namespace msdbg
