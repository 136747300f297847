// stats, nodes and doctor, as tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "msdbg/answers.h"
#include "msdbg/report.h"
#include "report/table.h"
#include "report/cell_text.h"

namespace msdbg {
namespace {

constexpr size_t kProblemsPerKind = 1;

constexpr CsvColumn kTensorColumns[] = {{"rank", "rank"},
                                        {"graph", "graph"},
                                        {"graph_id", "graph_id"},
                                        {"step", "step"},
                                        {"execution", "execution"},
                                        {"node", "node"},
                                        {"op", "op"},
                                        {"slot", "slot"},
                                        {"gradient_of", "gradient_of"},
                                        {"dtype", "dtype"},
                                        {"shape", "shape"},
                                        {"count", "stats.count"},
                                        {"min", "stats.min"},
                                        {"max", "stats.max"},
                                        {"mean", "stats.mean"},
                                        {"abs_mean", "stats.abs_mean"},
                                        {"std", "stats.std"},
                                        {"l2_norm", "stats.l2_norm"},
                                        {"nan_count", "stats.nan_count"},
                                        {"pos_inf_count", "stats.pos_inf_count"},
                                        {"neg_inf_count", "stats.neg_inf_count"},
                                        {"zero_count", "stats.zero_count"},
                                        {"dtype_max_count", "stats.dtype_max_count"},
                                        {"problem", "problem"}};
constexpr CsvColumn kNodeColumns[] = {{"rank", "rank"}, {"graph", "graph"}, {"graph_id", "graph_id"}, {"node", "name"},
                                      {"op", "op"},     {"kind", "kind"},   {"file", "source.file"},  {"line", "source.line"},
                                      {"scope", "scope"}};

std::string outputs_text(const Node& node) {
  std::string out;
  for (const OutputType& type : node.outputs) {
    if (!out.empty()) out += ", ";
    out += fmt::format("{}{}", dtype_name(type.dtype), type.shape ? shape_text(*type.shape) : "");
  }
  return out;
}

std::string inputs_text(const Graph& graph, const Node& node) {
  std::string out;
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const Edge edge = graph.effective_producer(node.id, slot);
    if (edge.node != kNoNode && graph.node(edge.node).op == "UpdateState") continue;
    if (!out.empty()) out += ", ";
    out += printable(edge.node == kNoNode ? std::string_view(node.inputs[slot].name)
                                          : graph.node(edge.node).last_component());
    if (edge.slot > 0) out += fmt::format(":{}", edge.slot);
  }
  return out;
}

/// Messages of one kind differ only in names and numbers.
std::string kind_of(const std::string& message) {
  std::string kind;
  for (char c : message) {
    if (c >= '0' && c <= '9') continue;
    kind += c;
  }
  return kind.substr(0, kind.find(':'));
}

}  // namespace

std::string stats_report(Session& session, const std::vector<StatsRow>& rows, const ReportStyle& style) {
  if (style.format == Format::kJson) return json_text(tensors_answer(session, rows));
  if (style.format == Format::kJsonl) return json_lines(tensors_answer(session, rows), "tensors");
  if (style.format == Format::kCsv) return csv_text(kTensorColumns, tensors_answer(session, rows)["tensors"]);
  if (style.format == Format::kMarkdown) return markdown_table(kTensorColumns, tensors_answer(session, rows)["tensors"]);
  if (rows.empty()) return "no tensors\n";
  const bool ranks = session.ranks().size() > 1;
  const bool graphs = std::any_of(rows.begin(), rows.end(),
                                  [&](const StatsRow& row) { return row.info.id.graph != rows[0].info.id.graph; });
  const bool executions =
      std::any_of(rows.begin(), rows.end(), [](const StatsRow& row) { return row.info.id.execution > 0; });
  std::vector<Table::Column> columns;
  if (ranks) columns.push_back({"rank", Align::kRight});
  if (graphs) columns.push_back({"graph", Align::kRight});
  columns.push_back({"step", Align::kRight});
  columns.push_back({.title = "tensor", .fit = Fit::kName});
  if (executions) columns.push_back({"execution", Align::kRight});
  std::vector<Table::Cell> gradients;
  for (const StatsRow& row : rows) gradients.push_back(gradient_of_cell(session, row.info.id));
  const bool any_gradient = std::any_of(gradients.begin(), gradients.end(), [](const Table::Cell& cell) { return !cell.text.empty(); });
  if (any_gradient) columns.push_back({.title = "gradient of", .fit = Fit::kName});
  columns.push_back({.title = "type", .drop = 1});
  std::vector<std::string_view> numbers = {"min", "max", "mean", "std"};
  if (style.wide) numbers = {"min", "max", "mean", "abs_mean", "std", "l2_norm", "zeros", "at dtype max"};
  for (std::string_view number : numbers)
    columns.push_back({.title = std::string(number), .align = Align::kRight, .drop = number == "std" ? 3 : number == "mean" ? 2 : 0});
  columns.push_back({.title = "not finite", .fit = Fit::kText, .drop = Table::kIfEmpty});
  Table table(std::move(columns), style.numbered);
  for (const StatsRow& row : rows) {
    const TensorInfo& info = row.info;
    std::vector<Table::Cell> cells;
    if (ranks) cells.emplace_back(std::to_string(info.id.rank));
    if (graphs) cells.emplace_back(std::to_string(info.id.graph));
    cells.emplace_back(std::to_string(info.id.step));
    cells.emplace_back(name_cell(session, info.id, slot_suffix(info.id.slot)));
    if (executions) cells.emplace_back(std::to_string(info.id.execution));
    if (any_gradient) cells.emplace_back(std::move(gradients[static_cast<size_t>(&row - rows.data())]));
    cells.emplace_back(type_text(info.dtype, info.shape));
    if (row.stats) {
      const Stats& s = *row.stats;
      auto real = [&](double value, uint32_t field) { cells.emplace_back(s.knows(field) ? value_text(value) : "-"); };
      auto count = [&](uint64_t value, uint32_t field) {
        cells.emplace_back(s.knows(field) ? std::to_string(value) : "-");
      };
      real(s.min, kStatMin);
      real(s.max, kStatMax);
      real(s.mean, kStatMean);
      if (style.wide) real(s.abs_mean, kStatAbsMean);
      real(s.std, kStatStd);
      if (style.wide) real(s.count > 0 && s.finite_count() == 0 ? std::nan("") : s.l2_norm, kStatL2Norm);
      if (style.wide) count(s.zero_count, kStatZero);
      if (style.wide) count(s.dtype_max_count, kStatDtypeMax);
      const std::string bad = nonfinite_text(s);
      cells.emplace_back(bad, bad.empty() ? Paint::kNone : Paint::kError);
    } else {
      for (size_t i = 0; i < numbers.size(); ++i) cells.emplace_back("-");
      cells.emplace_back("not computed: " + printable(info.problem.message()), Paint::kWarning);
    }
    table.add(std::move(cells));
  }
  return table.text(style);
}

std::string nodes_report(Session& session, const std::vector<NodeRef>& nodes, const ReportStyle& style) {
  if (style.format == Format::kJson) return json_text(nodes_answer(session, nodes));
  if (style.format == Format::kJsonl) return json_lines(nodes_answer(session, nodes), "nodes");
  if (style.format == Format::kCsv) return csv_text(kNodeColumns, nodes_answer(session, nodes)["nodes"]);
  if (style.format == Format::kMarkdown) return markdown_table(kNodeColumns, nodes_answer(session, nodes)["nodes"]);
  if (nodes.empty()) return "no nodes\n";
  const bool ranks = session.ranks().size() > 1;
  const bool graphs = std::any_of(nodes.begin(), nodes.end(),
                                  [&](const NodeRef& ref) { return ref.graph->id() != nodes[0].graph->id(); });
  std::vector<Table::Column> columns;
  if (ranks) columns.push_back({"rank", Align::kRight});
  if (graphs) columns.push_back({"graph", Align::kRight});
  columns.push_back({.title = "node", .fit = Fit::kName});
  columns.push_back({.title = "op", .fit = Fit::kText});
  if (style.wide) columns.push_back({"outputs"});
  if (style.wide) columns.push_back({"inputs"});
  columns.push_back({.title = "source", .fit = Fit::kText, .drop = 1, .least = 12});
  Table table(std::move(columns), true);
  for (const NodeRef& ref : nodes) {
    const Graph& graph = *ref.graph;
    const Node& node = graph.node(ref.node);
    std::vector<Table::Cell> cells;
    if (ranks) cells.emplace_back(std::to_string(graph.rank()));
    if (graphs) cells.emplace_back(std::to_string(graph.id()));
    cells.emplace_back(name_cell(session, {.rank = graph.rank(), .graph = graph.id(), .node = node.id, .slot = {}}));
    cells.emplace_back(printable(node.op));
    if (style.wide) cells.emplace_back(outputs_text(node));
    if (style.wide) cells.emplace_back(inputs_text(graph, node));
    cells.emplace_back(source_place(node, style.wide));
    table.add(std::move(cells));
  }
  return table.text(style);
}

std::string doctor_report(Session& session, const SessionReport& report, const ReportStyle& style) {
  if (style.format == Format::kJson) return json_text(doctor_answer(session, report));
  if (style.format == Format::kJsonl) return json_lines(doctor_answer(session, report), "problems");
  const Answer answer = doctor_answer(session, report);
  auto field = [](std::string_view name, std::string_view text) { return fmt::format("{:<10} {}\n", name, text); };
  auto text = [&](const Answer& of, const char* key) { return of[key].is_string() ? printable(of[key].get<std::string>()) : std::string(); };
  std::string out = field("dump", text(answer, "dump"));
  std::string layout = text(answer, "layout").empty() ? "unknown" : text(answer, "layout");
  if (const std::string epoch = text(answer, "epoch"); !epoch.empty()) layout += fmt::format(", file names of epoch {}", epoch);
  out += field("layout", layout);
  std::string version = text(answer, "framework_version");
  version = version.empty() ? "version unknown" : "MindSpore " + version;
  if (const std::string device = text(answer, "device_target"); !device.empty()) version += fmt::format(" on {}", device);
  out += field("written by", version);
  std::vector<std::string> nets;
  for (const Answer& net : answer["nets"]) nets.push_back(printable(net.get<std::string>()));
  if (!nets.empty()) out += field("nets", fmt::format("{}", fmt::join(nets, ", ")));
  out += field("ranks", numbers_text(answer["ranks"].get<std::vector<int64_t>>()));
  // Ranks with the same graph and steps have one line.
  std::vector<std::pair<std::string, std::vector<int>>> graphs;
  for (const Answer& graph : answer["graphs"]) {
    const auto steps = graph["steps"].get<std::vector<int64_t>>();
    std::string line = fmt::format("{} {}: {}, {} {}", graph["graph_id"].get<int>(), text(graph, "graph"), counted(graph["kernels"], "kernel"),
                                   steps.size() == 1 ? "step" : "steps", numbers_text(steps));
    if (graph["from_file"] == false) line += ", no graph file";
    auto same = std::find_if(graphs.begin(), graphs.end(), [&](const auto& entry) { return entry.first == line; });
    if (same == graphs.end()) same = graphs.insert(same, {std::move(line), {}});
    same->second.push_back(graph["rank"].get<int>());
  }
  for (size_t i = 0; i < graphs.size(); ++i) {
    const auto& [line, ranks] = graphs[i];
    out += field(i == 0 ? "graphs" : "", answer["ranks"].size() > 1 ? fmt::format("{}: {}", ranks_text(ranks), line) : line);
  }
  const auto files = [&](const char* key) { return answer["files"][key].get<uint64_t>(); };
  out += field("files", fmt::format("{}, {}, {}, {}, {} in device format, {} other", counted(files("tensors"), "tensor"),
                                    counted(files("parameters"), "parameter"), counted(files("constants"), "constant"),
                                    counted(files("statistics"), "statistic row"), files("device_format"), files("other")));
  if (report.problems.empty()) return fitted(out + field("problems", "none"), style);

  std::map<std::string, uint64_t> seen;
  std::string lines;
  uint64_t left_out = 0;
  for (const Problem& problem : report.problems) {
    if (!style.wide && ++seen[kind_of(problem.message)] > kProblemsPerKind) {
      ++left_out;
      continue;
    }
    const std::string severity(severity_name(problem.severity));
    lines += fmt::format("  {}{} {}{}{}\n", painted(severity, paint_for(problem.severity), style.colour),
                         std::string(8 - std::min<size_t>(8, severity.size()), ' '), printable(problem.path),
                         problem.path.empty() ? "" : ": ", printable(problem.message));
  }
  out += fmt::format("problems   {}\n{}", report.problems.size(), lines);
  if (left_out > 0) out += fmt::format("  ... {} more of the same kinds (all: --wide)\n", left_out);
  return fitted(std::move(out), style);
}

}  // namespace msdbg
