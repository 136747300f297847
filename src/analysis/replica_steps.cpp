#include "analysis/replica_steps.h"

#include <algorithm>
#include <unordered_map>

#include "msdbg/hash.h"

namespace msdbg {
namespace {

/// Elements of one rank cannot be compared with statistics of another: the kind that most ranks have counts.
void keep_one_kind(Sighting& sighting) {
  std::map<ReplicaEvidence, int> kinds;
  for (const auto& [rank, copy] : sighting.copies) {
    if (copy.print) ++kinds[copy.print->by];
  }
  if (kinds.size() < 2) return;
  const auto most = std::ranges::max_element(kinds, {}, [](const auto& kind) { return kind.second; });
  for (auto& [rank, copy] : sighting.copies) {
    if (!copy.print || copy.print->by == most->first) continue;
    copy.print.reset();
    copy.reason = "other ranks recorded it in another way: elements, checksum or statistics";
  }
}

/// What is the same place on several ranks.
struct SightingKey {
  size_t value = 0;
  std::string_view consumer;
  uint32_t slot = 0, execution = 0;
  bool operator==(const SightingKey&) const = default;
};

struct SightingHash {
  size_t operator()(const SightingKey& key) const {
    return hash_of(key.consumer, key.value ^ uint64_t{key.slot} << 32 ^ uint64_t{key.execution} << 48);
  }
};

}  // namespace

std::vector<std::vector<int>> equal_ranks(const Sighting& sighting, std::span<const int> ranks) {
  std::vector<std::vector<int>> out;
  std::vector<const ReplicaPrint*> prints;
  for (const int rank : ranks) {
    const auto copy = sighting.copies.find(rank);
    if (copy == sighting.copies.end() || !copy->second.print) continue;
    const ReplicaPrint* const own = copy->second.print.get();
    const auto same = std::ranges::find_if(prints, [&](const ReplicaPrint* print) { return print == own || *print == *own; });
    if (same == prints.end()) {
      prints.push_back(own);
      out.push_back({rank});
    } else {
      out[static_cast<size_t>(same - prints.begin())].push_back(rank);
    }
  }
  std::ranges::sort(out, [](const std::vector<int>& a, const std::vector<int>& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  });
  return out;
}

TensorId Sighting::tensor(int rank) const {
  const auto& [graph, phase, place, io, execution, slot] = order;
  return {rank, graph, step, execution, copies.at(rank).node, {is_input() ? Io::kInput : Io::kOutput, slot}};
}

class ReplicaReader::Numbers {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  Numbers(size_t values, bool inputs) : first_(inputs ? 0 : values, kNone) {}

  uint32_t& of(const SightingKey& key) {
    // Nearly all values have one output and run once.
    const bool usual = key.consumer.empty() && key.slot == 0 && key.execution == 0;
    return usual ? first_[key.value] : others_.try_emplace(key, kNone).first->second;
  }

 private:
  std::vector<uint32_t> first_;
  std::unordered_map<SightingKey, uint32_t, SightingHash> others_;
};

ReplicaReader::ReplicaReader(Session& session, const ReplicaModel& model, const FollowOptions& options, ReplicasResult* result)
    : session_(session), model_(model), options_(options), result_(*result) {}

std::vector<NodeRef> ReplicaReader::nodes(int rank, bool inputs) {
  std::vector<NodeRef> out;
  if (!inputs) {
    for (const ReplicaValue& value : model_.values()) {
      if (const auto own = value.nodes.find(rank); own != value.nodes.end()) out.push_back(own->second);
    }
    return out;
  }
  if (consumers_.empty()) {
    for (const ReplicaModel::Taken& taken : model_.inputs()) {
      if (consumers_.empty() || !(consumers_.back() == taken.consumer)) consumers_.push_back(taken.consumer);
      inputs_[{taken.consumer.graph, taken.consumer.node, taken.slot}] = {taken.value, taken.after};
    }
  }
  std::ranges::copy_if(consumers_, std::back_inserter(out), [&](const NodeRef& ref) { return ref.graph->rank() == rank; });
  return out;
}

std::optional<ReplicaReader::Place> ReplicaReader::place(const Graph& graph, const TensorId& id) const {
  if (id.slot.io == Io::kOutput) {
    const std::optional<size_t> value = model_.find(graph, id.node);
    return value ? std::optional(Place{*value, false}) : std::nullopt;
  }
  const auto at = inputs_.find({&graph, id.node, id.slot.index});
  return at == inputs_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<uint32_t> ReplicaReader::list(int rank, int64_t step, bool inputs, Numbers& numbers, std::vector<Sighting>& seen) {
  const std::vector<NodeRef> wanted = nodes(rank, inputs);
  TensorQuery query;
  query.ranks = IntSet::of(rank);
  query.steps = IntSet::of(step);
  query.nodes = &wanted;
  query.inputs = inputs;
  query.outputs = !inputs;
  std::vector<uint32_t> out;
  for (const TensorId& id : session_.tensors(query)) {
    const Graph& graph = *session_.graph(id.rank, id.graph);
    const Node& node = graph.node(id.node);
    const std::optional<Place> at = place(graph, id);
    if (!at) continue;
    // Values that no two ranks share are not read.
    const ReplicaValue& value = model_.values()[at->value];
    if (value.nodes.size() < 2 || (!value.parts.empty() && !value.apart && value.part_of(rank) == nullptr)) continue;
    const std::string_view consumer = inputs ? std::string_view(node.name) : std::string_view();
    uint32_t& number = numbers.of({at->value, consumer, id.slot.index, id.execution});
    if (number == Numbers::kNone) {
      number = static_cast<uint32_t>(seen.size());
      const bool parameter = node.kind != NodeKind::kOperator;
      const auto phase = !parameter ? Sighting::Phase::kRun : value.updated ? Sighting::Phase::kEnd : Sighting::Phase::kStart;
      Sighting& sighting = seen.emplace_back();
      sighting.order = {id.graph, phase, node.order, inputs ? at->after ? 2 : 0 : 1, id.execution, id.slot.index};
      sighting.value = at->value;
      sighting.consumer = consumer;
      sighting.step = step;
      sighting.copies.reserve(value.nodes.size());
    }
    seen[number].copies[rank].node = id.node;
    out.push_back(number);
  }
  return out;
}

/// A part of them at a time: what is not needed any more takes no memory.
Status ReplicaReader::read(int rank, std::span<const uint32_t> numbers, std::vector<Sighting>& seen) {
  constexpr size_t kAtATime = 1 << 16;
  std::vector<ReplicaRead> reads;
  for (size_t first = 0; first < numbers.size(); first += kAtATime) {
    const auto part = numbers.subspan(first, std::min(kAtATime, numbers.size() - first));
    reads.clear();
    for (const uint32_t number : part) reads.push_back({seen[number].tensor(rank), {}, {}});
    const Result<uint64_t> bytes = read_replicas(session_, options_.threads, reads);
    if (!bytes) return bytes.status();
    result_.coverage.bytes += *bytes;
    for (size_t i = 0; i < part.size(); ++i) {
      ByRank<ReplicaCopy>& copies = seen[part[i]].copies;
      ReplicaCopy& copy = copies.at(rank);
      copy.reason = std::move(reads[i].reason);
      std::optional<ReplicaPrint>& print = reads[i].print;
      if (!print) continue;
      const auto equal = std::ranges::find_if(copies, [&](const auto& other) { return other.second.print && *other.second.print == *print; });
      copy.print = equal != copies.end() ? equal->second.print : std::make_shared<const ReplicaPrint>(std::move(*print));
    }
  }
  return {};
}

Result<std::vector<Sighting>> ReplicaReader::read(int64_t step, bool inputs) {
  Numbers numbers(model_.values().size(), inputs);
  std::vector<Sighting> out;
  if (!inputs) out.reserve(model_.values().size());
  for (const int rank : result_.ranks) {
    const std::vector<uint32_t> listed = list(rank, step, inputs, numbers, out);
    if (Status status = read(rank, listed, out); !status.ok()) return status;
  }
  for (Sighting& sighting : out) keep_one_kind(sighting);
  const auto name = [&](const Sighting& sighting) {
    return sighting.is_input() ? sighting.consumer : model_.values()[sighting.value].name;
  };
  std::ranges::sort(out, [&](const Sighting& a, const Sighting& b) { return a.order != b.order ? a.order < b.order : name(a) < name(b); });
  return out;
}

}  // namespace msdbg
