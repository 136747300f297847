// The answers of msdbg/follow.h as text, and the user's program annotated with what its lines did.
//
// The session's owner thread only. Nothing is printed here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/follow.h"
#include "msdbg/picture.h"
#include "msdbg/report.h"

namespace msdbg {

// Formats: table, JSON, JSON lines, csv and markdown where they say something; all end with a newline.

std::string bisect_report(Session& session, const BisectResult& result, const ReportStyle& style);

/// `ascii`: sparklines of plain characters, for terminals and files without UTF-8. csv and JSON lines hold every point.
std::string trend_report(Session& session, const TrendResult& result, const ReportStyle& style, bool ascii = false);

/// A series as one line of at most `width` characters: eight heights from the smallest to the largest value, the mean of neighbours
/// where there are more points than characters, a dot where there is no value. `log_scale`: heights of the logarithms (positive values).
std::string sparkline(std::span<const std::optional<double>> series, size_t width, bool ascii = false, bool log_scale = false);
/// Heights are shown as logarithms where a positive series spans more than two decades.
bool shows_logarithms(std::span<const std::optional<double>> series);

/// table, JSON and markdown; JSON lines are one node each.
std::string propagation_report(Session& session, const Propagation& result, const ReportStyle& style);
/// The relation graph of the operators on the way. `hits`: conditions that hit are marked by their abbreviations. Beyond `limit` boxes the
/// nearest to the tensor are drawn and `title` says how many are not.
PictureGraph propagation_picture(Session& session, const Propagation& result, const CheckResult* hits = nullptr, size_t limit = 120);

std::string why_report(Session& session, const WhyAnswer& answer, const ReportStyle& style);

// ---- annotated source ----------------------------------------------------------------------------------------------------

/// A condition that hit on nodes of a line.
struct SourceHit {
  std::string abbr, rule;  ///< abbr: the rule's name where it has none
  uint64_t count = 0;      ///< findings, of all steps and ranks
  int64_t first_step = 0;
  TensorId tensor;         ///< of the first
};

struct SourceRow {
  int line = 0;                   ///< 1, 2, ...
  std::string code;               ///< with its indentation when it comes from the file, else as recorded
  bool recorded = false;          ///< the graph names this line
  bool differs = false;           ///< recorded, and the file on disk says something else there
  std::string recorded_code;      ///< when it differs
  std::vector<NodeRef> nodes;     ///< operators that this line produced, execution order; of every rank and graph
  size_t gradients = 0;           ///< of those, in the backward part
  std::vector<SourceHit> hits;    ///< most findings first
  std::optional<TensorId> worst_tensor;  ///< most NaN and Inf by share, else the largest magnitude
  std::optional<Stats> worst;            ///< its statistics
};

struct SourceFile {
  std::string path;               ///< as the graph names it
  std::string read_from;          ///< file the text was read from; "" when only recorded lines are known
  std::string note;               ///< why not, or how many lines differ
  std::vector<SourceRow> rows;    ///< ascending lines; the whole file when it was read
  uint64_t findings = 0;
};

struct SourceOptions {
  std::string file;               ///< end of the path; "" = every file of the user's program
  std::string root;               ///< directory to look for the files besides their recorded place; "" = none
  bool framework = false;         ///< files inside the framework, too
};

/// The user's program with the nodes, findings and worst statistics of each line. `result` is a check of this session; statistics
/// that it computed are used, no tensor is read. Nodes without a stack have no line.
/// Error: kNotFound when no node has a stack, or none of this file (with the nearest names).
Result<std::vector<SourceFile>> annotate_source(Session& session, const CheckResult& result, const SourceOptions& options = {});

/// `context`: lines without nodes that are shown before and after those with nodes; SIZE_MAX: all.
std::string source_report(Session& session, const std::vector<SourceFile>& files, const CheckResult& result, const ReportStyle& style,
                          size_t context = 2);

}  // namespace msdbg
