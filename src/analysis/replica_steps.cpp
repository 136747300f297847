#include "analysis/replica_steps.h"

#include <algorithm>

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

}  // namespace

std::vector<std::vector<int>> equal_ranks(const Sighting& sighting, std::span<const int> ranks) {
  std::vector<std::vector<int>> out;
  std::vector<const ReplicaPrint*> prints;
  for (const int rank : ranks) {
    const auto copy = sighting.copies.find(rank);
    if (copy == sighting.copies.end() || !copy->second.print) continue;
    const auto same = std::ranges::find_if(prints, [&](const ReplicaPrint* print) { return *print == *copy->second.print; });
    if (same == prints.end()) {
      prints.push_back(&*copy->second.print);
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

ReplicaReader::ReplicaReader(Session& session, const ReplicaModel& model, const FollowOptions& options, ReplicasResult* result)
    : session_(session), model_(model), options_(options), result_(*result) {
  for (const ReplicaValue& value : model.values()) {
    for (const auto& [rank, ref] : value.nodes) producers_.push_back(ref);
  }
  for (const ReplicaModel::Taken& taken : model.inputs()) {
    if (consumers_.empty() || !(consumers_.back() == taken.consumer)) consumers_.push_back(taken.consumer);
    inputs_[{taken.consumer.graph, taken.consumer.node, taken.slot}] = {taken.value, taken.after};
  }
}

/// A part of them at a time: what is not needed any more takes no memory.
Status ReplicaReader::read(std::span<ReplicaCopy* const> copies) {
  constexpr size_t kAtATime = 1 << 16;
  std::vector<ReplicaRead> reads;
  for (size_t first = 0; first < copies.size(); first += kAtATime) {
    const auto part = copies.subspan(first, std::min(kAtATime, copies.size() - first));
    reads.clear();
    for (const ReplicaCopy* copy : part) reads.push_back({copy->tensor, {}, {}});
    const Result<uint64_t> bytes = read_replicas(session_, options_.threads, reads);
    if (!bytes) return bytes.status();
    result_.coverage.bytes += *bytes;
    for (size_t i = 0; i < part.size(); ++i) {
      part[i]->print = std::move(reads[i].print);
      part[i]->reason = std::move(reads[i].reason);
    }
  }
  return {};
}

Result<std::vector<Sighting>> ReplicaReader::read(int64_t step, bool inputs) {
  TensorQuery query;
  query.ranks = options_.ranks;
  query.steps = IntSet::of(step);
  query.nodes = inputs ? &consumers_ : &producers_;
  query.inputs = inputs;
  query.outputs = !inputs;
  using Key = std::tuple<int, std::string, Slot, uint32_t>;
  std::map<Key, Sighting> found;
  for (const TensorId& id : session_.tensors(query)) {
    const Graph& graph = *session_.graph(id.rank, id.graph);
    const Node& node = graph.node(id.node);
    Place place;
    if (inputs) {
      const auto at = inputs_.find({&graph, id.node, id.slot.index});
      if (at == inputs_.end()) continue;
      place = at->second;
    } else {
      const auto at = model_.find(graph, id.node);
      if (!at) continue;
      place.value = *at;
    }
    // Values that no two ranks share are not read.
    const ReplicaValue& value = model_.values()[place.value];
    if (value.nodes.size() < 2 || (value.parts && value.part_of(id.rank) == nullptr)) continue;
    const auto [at, fresh] = found.try_emplace({id.graph, node.name, id.slot, id.execution});
    Sighting& sighting = at->second;
    if (fresh) {
      const bool parameter = node.kind != NodeKind::kOperator;
      const auto phase = !parameter ? Sighting::Phase::kRun : value.updated ? Sighting::Phase::kEnd : Sighting::Phase::kStart;
      sighting.order = {id.graph, phase, node.order, inputs ? place.after ? 2 : 0 : 1, id.execution, id.slot.index};
      sighting.value = place.value;
      if (inputs) sighting.consumer = node.name;
    }
    sighting.copies[id.rank].tensor = id;
  }
  std::vector<ReplicaCopy*> tasks;
  for (auto& [key, sighting] : found) {
    for (auto& [rank, copy] : sighting.copies) tasks.push_back(&copy);
  }
  // In the order of the session, which is about that of the files.
  std::ranges::sort(tasks, {}, &ReplicaCopy::tensor);
  if (Status status = read(tasks); !status.ok()) return status;
  for (auto& [key, sighting] : found) keep_one_kind(sighting);
  std::vector<Sighting> out;
  out.reserve(found.size());
  for (auto& [key, sighting] : found) out.push_back(std::move(sighting));
  std::ranges::stable_sort(out, {}, &Sighting::order);
  return out;
}

}  // namespace msdbg
