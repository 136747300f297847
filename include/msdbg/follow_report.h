// The answers of msdbg/follow.h as text, and the user's program annotated with the results of its lines.
//
// The session's owner thread only. Prints nothing.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/follow.h"
#include "msdbg/picture.h"
#include "msdbg/report.h"

namespace msdbg {

// Formats: table, JSON, JSON lines, and csv and markdown where useful; all end with a newline.

std::string bisect_report(Session& session, const BisectResult& result, const ReportStyle& style);

/// `ascii`: sparklines of plain characters, for terminals and files without UTF-8. csv and JSON lines contain every point.
std::string trend_report(Session& session, const TrendResult& result, const ReportStyle& style, bool ascii = false);

/// A series as one line of at most `width` characters: eight heights from the smallest to the largest value, the mean of neighbours
/// if there are more points than characters, a dot for a missing value. `log_scale`: heights of the logarithms (positive values).
std::string sparkline(std::span<const std::optional<double>> series, size_t width, bool ascii = false, bool log_scale = false);
/// A bar of one character; `height` from 0 to 1.
std::string_view bar_character(double height, bool ascii);
/// Heights show logarithms if a positive series spans more than two decades.
bool shows_logarithms(std::span<const std::optional<double>> series);

/// table, JSON and markdown; one JSON line per node.
std::string propagation_report(Session& session, const Propagation& result, const ReportStyle& style);
/// A picture of the operators on the paths. `hits`: adds the abbreviations of conditions that hit. Beyond `limit` boxes, draws
/// those nearest to the tensor, and `title` says how many are missing. What several ranks have in the same way is one box. `link`: the
/// target of a click on a box with this value.
PictureGraph propagation_picture(Session& session, const Propagation& result, const CheckResult* hits = nullptr, size_t limit = 120,
                                 const std::function<std::string(const TensorId&)>& link = {});

std::string why_report(Session& session, const WhyAnswer& answer, const ReportStyle& style);

// ---- annotated source ----------------------------------------------------------------------------------------------------

/// A condition that hit on nodes of a line.
struct SourceHit {
  std::string abbr, rule;  ///< abbr: the rule's name if it has none
  uint64_t count = 0;      ///< number of findings in all steps and ranks
  int64_t first_step = 0;
  TensorId tensor;         ///< of the first finding
};

struct SourceRow {
  int line = 0;                   ///< 1, 2, ...
  std::string code;               ///< with its indentation if read from the file, else as recorded
  bool recorded = false;          ///< the graph names this line
  bool differs = false;           ///< recorded, but the file on disk has something else there
  std::string recorded_code;      ///< if it differs
  std::vector<NodeRef> nodes;     ///< operators produced by this line, in execution order; of every rank and graph
  size_t gradients = 0;           ///< of those, in the backward part
  std::vector<SourceHit> hits;    ///< most findings first
  std::optional<TensorId> worst_tensor;  ///< the one with the largest share of NaN and Inf, else the largest magnitude
  std::optional<Stats> worst;            ///< its statistics
};

struct SourceFile {
  std::string path;               ///< as recorded in the graph
  std::string read_from;          ///< the file that the text was read from; "" if only recorded lines are known
  std::string note;               ///< why it was not read, or how many lines differ
  std::vector<SourceRow> rows;    ///< ascending lines; the whole file if it was read
  uint64_t findings = 0;
};

struct SourceOptions {
  std::string file;               ///< suffix of the path; "" = every file of the user's program
  std::string root;               ///< directory in which to look for the files, besides their recorded path; "" = none
  bool framework = false;         ///< include files of the framework
};

/// Ok if annotate_source() has lines to show; its error otherwise. Needs no check.
Status find_source(Session& session, const SourceOptions& options);
/// The user's program with the nodes, findings and worst statistics of each line. `result` is a check of this session; uses its
/// cached statistics and reads no tensor. Nodes without a stack have no line.
/// Error: kNotFound if no node has a stack, or none in this file (with the nearest names).
Result<std::vector<SourceFile>> annotate_source(Session& session, const CheckResult& result, const SourceOptions& options = {});

/// `context`: how many lines without nodes are shown before and after those with nodes; SIZE_MAX: all.
std::string source_report(Session& session, const std::vector<SourceFile>& files, const CheckResult& result, const ReportStyle& style,
                          size_t context = 2);

}  // namespace msdbg
