// nodes and doctor, as tables.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "msdbg/answers.h"
#include "msdbg/rank_report.h"
#include "msdbg/report.h"
#include "msdbg/settings_report.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr size_t kProblemsPerKind = 1;

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
    out += printable(edge.node == kNoNode ? std::string_view(edge.name)
                                          : graph.node(edge.node).last_component());
    if (edge.slot > 0) out += fmt::format(":{}", edge.slot);
  }
  return out;
}

/// Nodes of several ranks that have one line: the same name, operator, types, inputs and source.
struct JoinedNodes {
  size_t first;  ///< of the nodes
  std::vector<int> ranks;
};

std::vector<JoinedNodes> alone(const std::vector<NodeRef>& nodes) {
  std::vector<JoinedNodes> lines;
  for (size_t i = 0; i < nodes.size(); ++i) lines.push_back({i, {nodes[i].graph->rank()}});
  return lines;
}

std::vector<JoinedNodes> joined_nodes(Session& session, const std::vector<NodeRef>& nodes) {
  if (session.ranks().size() == 1) return alone(nodes);
  std::vector<JoinedNodes> lines;
  std::unordered_map<std::string, size_t> known;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Graph& graph = *nodes[i].graph;
    const Node& node = graph.node(nodes[i].node);
    // A rank may have several nodes of one name; they keep their lines.
    std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", node.name, graph.id(), node.op.get(), outputs_text(node),
                                  inputs_text(graph, node), source_place(node, true));
    const auto found = known.find(key);
    if (found != known.end() && std::ranges::find(lines[found->second].ranks, graph.rank()) == lines[found->second].ranks.end()) {
      lines[found->second].ranks.push_back(graph.rank());
      continue;
    }
    known.insert_or_assign(std::move(key), lines.size());
    lines.push_back({i, {graph.rank()}});
  }
  for (JoinedNodes& line : lines) std::ranges::sort(line.ranks);
  return lines;
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

/// `856 tensors in each step`, where all ranks and steps have the same number; "" otherwise.
std::string uniform_text(const RankGrid& grid) {
  if (grid.cells.empty() || !grid.cells.front().present) return "";
  const auto is_same = [&](const RankGrid::Cell& cell) { return cell == grid.cells.front(); };
  const bool same = std::all_of(grid.cells.begin(), grid.cells.end(), is_same);
  return same ? fmt::format("{} in each step", counted(grid.cells.front().first, "tensor")) : "";
}

}  // namespace

std::vector<size_t> nodes_rows(Session& session, const std::vector<NodeRef>& nodes) {
  std::vector<size_t> rows;
  for (const JoinedNodes& line : joined_nodes(session, nodes)) rows.push_back(line.first);
  return rows;
}

Status stream_nodes(Session& session, const std::vector<NodeRef>& nodes, const ReportStyle& style, bool each, const TextSink& write) {
  if (style.format != Format::kTable) {
    RowWriter writer(style.format, {{"dump", session.info().source}}, "nodes", kNodeColumns);
    for (const NodeRef& ref : nodes) {
      if (Status status = write(writer.add(node_answer(ref))); !status.ok()) return status;
    }
    return write(writer.finish());
  }
  if (nodes.empty()) return write("no nodes\n");
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
  for (const JoinedNodes& line : each ? alone(nodes) : joined_nodes(session, nodes)) {
    const Graph& graph = *nodes[line.first].graph;
    const Node& node = graph.node(nodes[line.first].node);
    std::vector<Table::Cell> cells;
    if (ranks) cells.emplace_back(ranks_cell(line.ranks));
    if (graphs) cells.emplace_back(std::to_string(graph.id()));
    cells.emplace_back(name_cell(session, {.rank = graph.rank(), .graph = graph.id(), .node = node.id, .slot = {}}));
    cells.emplace_back(printable(node.op));
    if (style.wide) cells.emplace_back(outputs_text(node));
    if (style.wide) cells.emplace_back(inputs_text(graph, node));
    cells.emplace_back(source_place(node, style.wide));
    table.add(std::move(cells));
  }
  return table.write(style, write);
}

std::string nodes_report(Session& session, const std::vector<NodeRef>& nodes, const ReportStyle& style, bool each) {
  std::string out;
  const Status written = stream_nodes(session, nodes, style, each, [&](std::string_view text) { return out += text, Status(); });
  MSDBG_CHECK(written.ok());
  return out;
}

std::string doctor_report(Session& session, const SessionReport& report, const ReportStyle& style, const SettingsResult* settings) {
  const RankGrid grid = tensors_grid(session);
  Answer answer = doctor_answer(session, report, grid);
  answer["settings"] = settings != nullptr ? settings_answer(session, *settings)["settings"] : Answer();
  if (style.format == Format::kJson) return json_text(answer);
  if (style.format == Format::kJsonl) return json_lines(answer, "problems");
  auto field = [](std::string_view name, std::string_view text) { return fmt::format("{:<10} {}\n", name, text); };
  auto text = [&](const Answer& of, const char* key) {
    return of[key].is_string() ? printable(of[key].get<std::string>()) : std::string();
  };
  std::string out = field("dump", text(answer, "dump"));
  std::string layout = text(answer, "layout").empty() ? "unknown" : text(answer, "layout");
  const bool by_msprobe = layout == "P";
  if (const std::string epoch = text(answer, "epoch"); !epoch.empty())
    layout += fmt::format(", {} {}", by_msprobe ? "msprobe" : "file names of epoch", epoch);
  out += field("layout", layout);
  std::string version = text(answer, "framework_version");
  version = version.empty() ? "version unknown" : "MindSpore " + version;
  if (const std::string device = text(answer, "device_target"); !device.empty()) version += fmt::format(" on {}", device);
  if (!by_msprobe) out += field("written by", version);
  std::vector<std::string> nets;
  for (const Answer& net : answer["nets"]) nets.push_back(printable(net.get<std::string>()));
  if (!nets.empty()) out += field("nets", fmt::format("{}", fmt::join(nets, ", ")));
  out += field("ranks", numbers_text(answer["ranks"].get<std::vector<int64_t>>()));
  // Ranks with the same graph and steps have one line.
  std::vector<std::pair<std::string, std::vector<int>>> graphs;
  for (const Answer& graph : answer["graphs"]) {
    const auto steps = graph["steps"].get<std::vector<int64_t>>();
    std::string line = fmt::format("{} {}: {}, {} {}", graph["graph_id"].get<int>(), text(graph, "graph"),
                                   counted(graph["kernels"], by_msprobe ? "call" : "kernel"), steps.size() == 1 ? "step" : "steps", numbers_text(steps));
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
  if (const std::string each = uniform_text(grid); !each.empty()) out += field("per rank", each);
  else out += rank_table_text(grid, style);
  const std::string sheet = settings != nullptr ? "\n" + settings_report(session, *settings, style) : "";
  if (report.problems.empty()) return fitted(out + field("problems", "none") + sheet, style);

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
  return fitted(out + sheet, style);
}

}  // namespace msdbg
