#include "session/dump/rank_opener.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <ranges>
#include <set>
#include <unordered_set>

#include "msdbg/file.h"
#include "msdbg/log.h"
#include "msdbg/node_names.h"
#include "msdbg/threads.h"
#include "msdbg/wire.h"
#include "session/dump/container_list.h"
#include "session/dump/directory.h"
#include "session/dump/history.h"

namespace msdbg::dump {
namespace {

constexpr std::string_view kGraphPrefix = "ms_output_trace_code_graph_";
constexpr std::string_view kOrderPrefix = "ms_execution_order_graph_";

/// The type in `.../Conv2D-op3`; the whole last component if it has no number.
std::string type_in_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash + 1);
  return std::string(split_number(last).stem);
}

}  // namespace

RankOpener::RankOpener(const Layout& layout, const RankDirectory& rank, DirectoryLister& lister, DumpData& out)
    : layout_(layout), rank_(rank), lister_(lister), out_(out) {}

Status RankOpener::run() {
  const auto first = static_cast<std::ptrdiff_t>(out_.problems.size());
  if (Status status = read_graphs_and_directories(); !status.ok()) return status;
  // An order without a graph file makes nodes. Others only arrange them, while their names are joined.
  const auto orders = numbered_files(join_path(rank_.path, "execution_order"), kOrderPrefix, ".csv", graph_problems_);
  const bool arranges = std::ranges::all_of(orders, [this](const auto& order) { return from_file_.contains(order.first); });
  Workers side;
  const bool aside = arranges && !orders.empty() && side.start(1, [&](unsigned) { read_orders(orders); }) == 1;
  if (!aside) read_orders(orders);
  std::set<int> graphs;
  for (const DataDirectory& data : rank_.data) graphs.insert(layout_.graphs_share_directories() ? 0 : data.graph);
  // Joins all names before adding any node: the joiners look into the builders.
  for (int graph : graphs) {
    if (Status status = join_graph(graph); !status.ok()) return status;
  }
  if (aside) side.join();
  out_.problems.insert(out_.problems.begin() + first, std::make_move_iterator(graph_problems_.begin()),
                       std::make_move_iterator(graph_problems_.end()));
  for (int graph : graphs) add_unmatched_names(graph);
  add_slots();
  note_graphs();
  if (Status status = fill_indexes(); !status.ok()) return status;
  read_history();
  return {};
}

/// Lists the directories while it reads the graphs: with many nodes, both take about as long. The graphs on this thread, as they take
/// many small allocations: malloc gets memory for other threads a page at a time.
Status RankOpener::read_graphs_and_directories() {
  Workers side;
  Status listed;
  const bool started = side.start(1, [&](unsigned) { listed = list_directories(); }) == 1;
  read_graphs();
  if (started) side.join();
  else listed = list_directories();
  return listed;
}

/// Of another rank where this one has none: replicas run the same graphs.
std::vector<std::pair<int, std::string>> RankOpener::graph_files() {
  auto files = numbered_files(join_path(rank_.path, "graphs"), kGraphPrefix, ".pb", graph_problems_);
  if (!files.empty() || layout_.kind == "files") return files;
  for (const RankDirectory& other : layout_.ranks) {
    std::vector<Problem> told_by_the_other;
    files = numbered_files(join_path(other.path, "graphs"), kGraphPrefix, ".pb", told_by_the_other);
    if (files.empty()) continue;
    add_problem(graph_problems_, Severity::kInfo, join_path(rank_.path, "graphs"),
                fmt::format("rank {} has no graph file: it is read with that of rank {}", rank_.rank, other.rank));
    break;
  }
  return files;
}

void RankOpener::read_graphs() {
  for (const auto& [id, path] : graph_files()) {
    std::vector<std::string> notes;
    const Stopwatch watch;
    Result<GraphBuilder> builder = read_graph_file(path, rank_.rank, id, &notes);
    for (std::string& note : notes) add_problem(graph_problems_, Severity::kInfo, path, std::move(note));
    if (!builder) {
      add_problem(graph_problems_, Severity::kError, path, "the graph cannot be read: " + builder.status().message());
      builder_of(id).set_source_path(path);  // a path without from_file() means that there was a graph file
      continue;
    }
    if (log_wanted(LogLevel::kInfo)) {
      log(LogLevel::kInfo, fmt::format("read graph {} in {}: {} nodes", path, format_duration(watch.seconds()), builder->size()));
    }
    builder->set_source_path(path);
    builders_.emplace(id, std::move(*builder));
    from_file_[id] = true;
  }
}

void RankOpener::read_orders(std::span<const std::pair<int, std::string>> orders) {
  std::set<int> ordered;
  for (const auto& [id, path] : orders) {
    ordered.insert(id);
    const Result<std::vector<std::string>> names = read_execution_order(path);
    if (!names) {
      add_problem(graph_problems_, Severity::kError, path, without_path(names.status(), path).message());
      continue;
    }
    const bool known = from_file_.count(id) > 0;
    if (!known && names->empty()) continue;
    GraphBuilder& builder = builder_of(id);
    if (!known) {
      // No graph, but its kernels by full name and in order: better than names derived from files.
      std::set<std::string_view> seen;
      for (const std::string& name : *names) {
        if (!seen.insert(name).second) continue;
        Node node;
        node.name = name;
        node.op = type_in_name(name);
        node.scope = scope_of(name);
        builder.add(std::move(node));
      }
    }
    const std::vector<std::string> unknown = builder.set_execution_order(*names);
    if (!unknown.empty()) {
      add_problem(graph_problems_, Severity::kWarning, path,
                  fmt::format("{} names are not in the graph, the first is {}", unknown.size(), printable(unknown[0])));
    }
  }
  for (auto& [id, builder] : builders_) {
    if (!ordered.contains(id)) borrow_order(id, builder);
  }
}

/// The order of another rank, if this graph has all nodes that it names.
void RankOpener::borrow_order(int id, GraphBuilder& builder) {
  std::unordered_set<std::string_view> own;  // when there is another order
  for (const RankDirectory& other : layout_.ranks) {
    if (other.rank == rank_.rank) continue;
    const std::string path = join_path(other.path, fmt::format("execution_order/{}{}.csv", kOrderPrefix, id));
    const Result<std::vector<std::string>> names = read_execution_order(path);
    if (!names || names->empty()) continue;
    if (own.empty()) {
      for (NodeId node = 0; node < builder.size(); ++node) own.insert(builder.node(node).name);
    }
    if (!std::all_of(names->begin(), names->end(), [&](const std::string& name) { return own.contains(name); })) continue;
    builder.set_execution_order(*names);
    return;
  }
}

GraphBuilder& RankOpener::builder_of(int graph) {
  auto found = builders_.find(graph);
  if (found == builders_.end()) {
    found = builders_.emplace(graph, GraphBuilder(rank_.rank, graph)).first;
    found->second.set_name(fmt::format("graph_{}", graph));
    found->second.set_from_file(false);
  }
  return found->second;
}

Status RankOpener::list_directories() {
  const unsigned threads = thread_count(0, rank_.data.size());
  const size_t first = out_.names.size();
  out_.names.resize(first + threads);
  listed_.resize(rank_.data.size());
  Status status = parallel_for(rank_.data.size(), threads, [&](uint64_t at, unsigned worker) {
    const std::string& path = rank_.data[at].path;
    listed_[at] = list_step(path, layout_.kind == "files", lister_, out_.names[first + worker]);
    return Status();
  });
  if (!status.ok()) return status;
  for (size_t at = 0; at < listed_.size(); ++at) {
    list_containers(rank_.data[at].path, listed_[at].files);  // on several threads itself
    take_listed(rank_.data[at], listed_[at]);
  }
  list_debug_files(out_.names[first]);
  return {};
}

void RankOpener::take_listed(const DataDirectory& data, StepFiles& step) {
  for (Problem& problem : step.problems) out_.problems.push_back(std::move(problem));
  directory_index_.push_back(static_cast<uint32_t>(out_.directories.size()));
  // `step` owns the rows until the indexes are filled.
  out_.directories.push_back({data.path, {}, std::move(step.others), std::move(step.unmapped)});
  OverflowRecords* records = nullptr;
  for (const std::string& name : step.overflow) {
    if (!records) records = &out_.overflow[{rank_.rank, data.step}];
    (name.ends_with(".json") ? records->readable : records->containers).push_back(join_path(data.path, name));
  }
}

void RankOpener::list_debug_files(TextArena& names) {
  const std::string debug = join_path(rank_.path, "debug_files");
  Result<Listing> steps = list_directory(debug);
  if (!steps) return;
  for (const DirectoryEntry& entry : *steps) {
    const std::optional<int64_t> step = parse_digits(entry.name);
    if (!entry.directory || !step) continue;
    for (const std::string& name : list_step(join_path(debug, entry.name), false, lister_, names).overflow) {
      OverflowRecords& records = out_.overflow[{rank_.rank, *step}];
      (name.ends_with(".json") ? records.readable : records.containers)
          .push_back(join_path(join_path(debug, entry.name), name));
    }
  }
}

Status RankOpener::join_graph(int graph) {
  const bool shared_directories = layout_.graphs_share_directories();
  Joiner joiner;
  if (const auto own = builders_.find(graph); own != builders_.end()) joiner.add_graph(graph, own->second);
  for (auto& [id, builder] : builders_) {
    if (id != graph && (shared_directories || builder.root_id() == graph)) joiner.add_graph(id, builder);
  }
  const size_t first = items_.size();
  size_t more = 0;
  for (const StepFiles& step : listed_) more += step.files.size() + step.rows.size();
  if (first == 0) items_.reserve(more);
  for (uint32_t d = 0; d < rank_.data.size(); ++d) {
    if (!shared_directories && rank_.data[d].graph != graph) continue;
    const auto add = [&](uint32_t at, bool is_file, const FileName& name) {
      // Rank 0 alone writes metadata, and its dump may be missing. Only on a CPU the type is spelled like this.
      if (out_.info.device_target.empty() && name.dtype.starts_with("Float")) out_.info.device_target = "CPU";
      // Until its node is found, the item keeps what the joiner knows about it in its place.
      items_.push_back({d, at, is_file, format_index(name.format), {graph, joiner.announce(name), Note::kNone}});
    };
    for (uint32_t i = 0; i < listed_[d].files.size(); ++i) add(i, true, listed_[d].files[i].name);
    for (uint32_t i = 0; i < listed_[d].rows.size(); ++i) add(i, false, listed_[d].rows[i].name);
  }
  epochs_.push_back(joiner.finish());

  // Most names fit one node; the others need a second look, in their order.
  constexpr size_t kItemsPerTask = 4096;
  std::vector<std::vector<uint32_t>> others((items_.size() - first + kItemsPerTask - 1) / kItemsPerTask);
  Status joined = parallel_for(others.size(), 0, [&](uint64_t task, unsigned) {
    const size_t last = std::min(items_.size(), first + (task + 1) * kItemsPerTask);
    for (size_t i = first + task * kItemsPerTask; i < last; ++i) {
      const std::vector<JoinedNode> nodes = joiner.find(name_of(items_[i]), items_[i].node.node);
      if (nodes.size() == 1) items_[i].node = nodes[0];
      else others[task].push_back(static_cast<uint32_t>(i));
    }
    return Status();
  });
  if (!joined.ok()) return joined;

  // On GPU the parameters of every graph are in the directory of the step's first graph.
  std::optional<Joiner> every_graph;
  const auto elsewhere = [&](const FileName& name) -> std::vector<JoinedNode> {
    if (from_file_.count(graph) == 0 || builders_.size() == 1) return {};
    if (!every_graph) {
      every_graph.emplace();
      for (auto& [id, builder] : builders_) every_graph->add_graph(id, builder);
    }
    return every_graph->find(name);
  };
  std::map<std::string, std::pair<std::vector<JoinedNode>, std::vector<size_t>>> shared;
  std::vector<uint32_t> unmatched;
  for (const uint32_t i : others | std::views::join) {
    const FileName& name = name_of(items_[i]);
    std::vector<JoinedNode> nodes = joiner.find(name);
    if (nodes.empty() && name.op_type == "Parameter" && !rank_.data[items_[i].directory].constants &&
        !is_constant_name(name.op)) {
      nodes = elsewhere(name);
    }
    if (nodes.size() == 1) {
      items_[i].node = nodes[0];
    } else if (nodes.empty()) {
      unmatched.push_back(i);
    } else {
      const std::string key = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", items_[i].directory, items_[i].is_file,
                                          name.op_type, name.op, static_cast<int>(name.io), name.slot);
      auto& entry = shared[key];
      entry.first = std::move(nodes);
      entry.second.push_back(i);
    }
  }
  assign_shared_names(shared);
  if (!unmatched.empty()) unmatched_[graph].items = std::move(unmatched);
  return {};
}

/// Files whose name fits several nodes: with as many files as nodes, match them by time; otherwise all go to the first node.
void RankOpener::assign_shared_names(std::map<std::string, std::pair<std::vector<JoinedNode>, std::vector<size_t>>>& shared) {
  for (auto& [key, entry] : shared) {
    auto& [nodes, items] = entry;
    std::sort(items.begin(), items.end(),
              [&](size_t a, size_t b) { return name_of(items_[a]).timestamp < name_of(items_[b]).timestamp; });
    for (size_t k = 0; k < items.size(); ++k) {
      items_[items[k]].node = nodes[items.size() == nodes.size() ? k : 0];
      items_[items[k]].node.note = Note::kSharedName;
    }
  }
}

Node RankOpener::node_named(std::string_view type, std::string_view op) {
  Node node;
  std::string name(op);
  if (type.empty()) {  // the headerless form uses dashes for the slashes of the whole name
    for (size_t at = name.find("--"); at != std::string::npos; at = name.find("--", at + 1)) name.replace(at, 2, "/");
  }
  const bool parameter = type == "Parameter" || (type.empty() && !split_number(name).number);
  if (parameter) {
    node.kind = is_constant_name(op) ? NodeKind::kConstant : NodeKind::kParameter;
    node.op = node.kind == NodeKind::kConstant ? "Const" : "Parameter";
    if (node.kind == NodeKind::kConstant) node.file_key = op;
  } else {
    node.op = type.empty() ? type_in_name(name) : std::string(type);
  }
  node.name = name.empty() ? std::string(type) : std::move(name);
  node.scope = parameter ? std::string_view() : scope_of(node.name);
  return node;
}

/// A node has at least its dumped slots.
void RankOpener::add_slots() {
  // Nodes share their lists of types, so a list is changed as a whole, once; most nodes have one output and need no other list.
  std::map<std::pair<int, NodeId>, std::vector<OutputType>> changed;
  for (const Item& item : items_) {
    const FileName& name = name_of(item);
    if (name.kind == FileKind::kDevice) continue;
    GraphBuilder& builder = builder_of(item.node.graph);
    Node& node = builder.node(item.node.node);
    if (name.io == Io::kInput) {
      if (node.inputs.size() <= name.slot) node.inputs.resize(name.slot + 1);
      continue;
    }
    const DType dtype = dtype_from_name(name.dtype);
    auto outputs = changed.find({item.node.graph, node.id});
    if (outputs == changed.end()) {
      if (name.slot < node.outputs.size() && (node.outputs[name.slot].dtype != DType::kUnknown || dtype == DType::kUnknown)) continue;
      if (name.slot == 0 && node.outputs.empty()) {
        builder.set_outputs(node.id, {OutputType{dtype, {}}});
        continue;
      }
      outputs = changed.emplace(std::pair(item.node.graph, node.id), node.outputs.get()).first;
    }
    if (outputs->second.size() <= name.slot) outputs->second.resize(name.slot + 1);
    OutputType& type = outputs->second[name.slot];
    if (type.dtype == DType::kUnknown) type.dtype = dtype;
  }
  for (auto& [place, outputs] : changed) builder_of(place.first).set_outputs(place.second, std::move(outputs));
}

}  // namespace msdbg::dump
