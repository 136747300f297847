#include "session/dump/dump_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "msdbg/in_place.h"
#include "session/dump/directory.h"

namespace msdbg::dump {
namespace {

/// By the beginning of the type; a longer one is another spelling.
bool is_collective(std::string_view op) {
  constexpr std::string_view kCollectives[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AlltoAll", "AllToAll",
                                               "Hcom",      "InnerComm", "DistComm"};
  return std::ranges::any_of(kCollectives, [&](std::string_view name) { return op.starts_with(name) && !op.starts_with("BroadcastTo"); });
}

}  // namespace

const GraphData* DumpSession::graph_data(int rank, int graph) const {
  const auto found = data_.data.find({rank, graph});
  return found == data_.data.end() ? nullptr : &found->second;
}

const StepIndex* DumpSession::step_index(int rank, int graph, int64_t step) const {
  const GraphData* data = graph_data(rank, graph);
  if (!data) return nullptr;
  const auto found = data->steps.find(step);
  return found == data->steps.end() ? nullptr : &found->second;
}

std::vector<int64_t> DumpSession::steps() const {
  std::set<int64_t> all;
  for (const auto& [key, data] : data_.data) {
    for (const auto& [step, index] : data.steps) all.insert(step);
  }
  return {all.begin(), all.end()};
}

std::vector<int64_t> DumpSession::steps(int rank, int graph) const {
  std::vector<int64_t> steps;
  if (const GraphData* data = graph_data(rank, graph)) {
    for (const auto& [step, index] : data->steps) steps.push_back(step);
  }
  return steps;
}

uint32_t DumpSession::executions(int rank, int graph, int64_t step, NodeId node) {
  const StepIndex* index = step_index(rank, graph, step);
  return index ? index->executions(node) : 0;
}

const Value* DumpSession::find(const TensorId& id) const {
  const GraphData* data = graph_data(id.rank, id.graph);
  if (!data || id.node >= data->graph->nodes().size()) return nullptr;
  if (const StepIndex* index = step_index(id.rank, id.graph, id.step)) {
    if (const Value* value = index->find(id.node, id.slot, id.execution)) return value;
  }
  const bool constant = data->graph->node(id.node).kind == NodeKind::kConstant;
  return constant ? data->constants.find(id.node, id.slot, id.execution) : nullptr;
}

Status DumpSession::not_dumped(const TensorId& id) const {
  const auto absent = [](std::string text) { return Status(Code::kNotFound, "not dumped: " + std::move(text)); };
  const GraphData* data = graph_data(id.rank, id.graph);
  if (!data) return absent(fmt::format("there is no graph {} of rank {}", id.graph, id.rank));
  if (id.node >= data->graph->nodes().size()) return absent(fmt::format("graph {} has no such node", id.graph));
  const Node& node = data->graph->node(id.node);
  const std::vector<int64_t> have = steps(id.rank, id.graph);
  const StepIndex* index = step_index(id.rank, id.graph, id.step);
  if (!index) {
    return absent(
        fmt::format("graph {} has no data of step {} (have steps {})", id.graph, id.step, numbers_text(have)));
  }
  if (is_structural(node.op))
    return absent(fmt::format("{} only orders or groups values and has none of its own", node.name));
  const std::span<const Value> values = index->values_of(id.node);
  if (values.empty()) {
    std::vector<int64_t> others;
    for (const auto& [step, other] : data->steps) {
      if (!other.values_of(id.node).empty()) others.push_back(step);
    }
    return absent(others.empty() ? fmt::format("{} has no file in any step", node.name)
                                 : fmt::format("{} has no file in step {} (have steps {})", node.name, id.step,
                                               numbers_text(others)));
  }
  std::string there;
  const auto executions = std::ranges::count(values, id.slot, &Value::slot);
  if (executions > 0) {
    return absent(fmt::format("{}:{} has {} executions in step {}; number {} does not exist", node.name, slot_name(id.slot), executions,
                              id.step, id.execution));
  }
  for (const Value& value : values) {
    if (value.execution == 0) there += (there.empty() ? "" : ", ") + slot_name(value.slot);
  }
  std::string why;
  if (id.slot.io == Io::kInput && is_collective(node.op) && values.front().kind == FileKind::kContainer) {
    why = "; the Ascend runtime does not record the inputs of collective operators";
    const NodeId producer = id.slot.index < node.inputs.size() ? node.inputs[id.slot.index].node : kNoNode;
    if (producer != kNoNode) {
      why += fmt::format(", it was made by {}:output:{}", data->graph->node(producer).name, node.inputs[id.slot.index].slot);
    }
  }
  return absent(
      fmt::format("{}:{} has no file in step {} (there are {}){}", node.name, slot_name(id.slot), id.step, there, why));
}

std::string DumpSession::path_of(const Value& value) const {
  return join_path(data_.directories[value.directory].path, value.file());
}

FileHints DumpSession::hints_of(const Value& value) {
  const FileForm form = value.kind == FileKind::kRaw ? FileForm::kRaw : FileForm::kNpy;
  return {form, value.dtype, value.has_shape ? std::optional(value.shape.get()) : std::nullopt};
}

Status DumpSession::format_problem(const Value& value) const { return content_problem(value.kind, data_.formats[value.format]); }

TensorInfo DumpSession::identify(const TensorId& id) {
  TensorInfo info;
  info.id = id;
  if (const Value* value = find(id)) {
    info.source = path_of(*value);
    info.format = data_.formats[value->format];
  }
  return info;
}

Result<OpenTensor> DumpSession::open(const TensorId& id) {
  const Value* value = find(id);
  if (!value) return not_dumped(id);
  TensorInfo info = identify(id);
  info.note = note_text(value->note);
  if (value->kind != FileKind::kStatistics) {
    auto reader = open_value(info, value->kind, hints_of(*value), type_of(id));
    return OpenTensor(std::move(info), std::move(reader));
  }
  describe_row(info, *value);
  return OpenTensor(std::move(info), nullptr);
}

void DumpSession::describe_row(TensorInfo& info, const Value& value) const {
  const KnownDirectory& directory = data_.directories[value.directory];
  const StatisticRow& row = directory.rows[static_cast<size_t>(value.row)];
  info.availability = Availability::kStatisticsOnly;
  info.dtype = row.dtype;
  info.shape = row.shape;
  info.count = row.stats.count;
  info.bytes = row.bytes;
  info.source = fmt::format("{}:{}", join_path(directory.path, "statistic.csv"), row.line);
  info.problem = row.problem;
  if (info.problem.ok() && row.dtype == DType::kUnknown) {
    info.problem =
        Status(Code::kUnsupported, fmt::format("elements of type '{}' are not evaluated", printable(row.dtype_text)));
  }
}

std::optional<uint64_t> DumpSession::time_of(const TensorId& id) const {
  const Value* value = find(id);
  return value && value->timestamp > 0 ? std::optional(value->timestamp) : std::nullopt;
}

std::optional<uint64_t> DumpSession::written_at(const TensorId& id) { return time_of(id); }

/// Control flow on tensors splits a network into graphs. MindSpore writes parameters when the step ends: what this graph has read may have
/// been updated by another one that ran behind it.
bool DumpSession::may_have_changed(const TensorId& parameter) const {
  const std::optional<uint64_t> written = time_of(parameter);
  if (!written) return false;
  const auto time_of_user = [&](const Graph& of, const Use& use) {
    return time_of({parameter.rank, of.id(), parameter.step, 0, use.node, {}});
  };
  std::optional<uint64_t> read;  // first
  const Graph& own = *graph(parameter.rank, parameter.graph);
  for (const Use& use : own.effective_users(parameter.node)) {
    const std::optional<uint64_t> time = time_of_user(own, use);
    if (time && (!read || *time < *read)) read = time;
  }
  if (!read) return false;
  const std::string& name = node(parameter).name;
  const auto updates = [&](const Graph& other, const Use& use) {
    const std::vector<uint32_t> slots = updated_slots(other, other.node(use.node));
    if (std::ranges::find(slots, use.slot) == slots.end()) return false;
    const std::optional<uint64_t> time = time_of_user(other, use);
    return time && *read < *time && *time < *written;
  };
  for (const GraphPtr& other : data_.graphs) {
    if (other->rank() != parameter.rank || other->id() == parameter.graph) continue;
    if (step_index(parameter.rank, other->id(), parameter.step) == nullptr) continue;
    const Node* const same = other->find(name);
    if (same == nullptr || same->kind != NodeKind::kParameter) continue;
    if (std::ranges::any_of(other->effective_users(same->id), [&](const Use& use) { return updates(*other, use); })) return true;
  }
  return false;
}

std::optional<Stats> DumpSession::given_statistics(const TensorId& id) {
  const Value* value = find(id);
  if (!value || value->row < 0) return std::nullopt;
  const StatisticRow& row = data_.directories[value->directory].rows[static_cast<size_t>(value->row)];
  return row.problem.ok() ? std::optional(row.stats) : std::nullopt;
}

}  // namespace msdbg::dump
