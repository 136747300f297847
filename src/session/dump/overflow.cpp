// The hardware's overflow flags, recorded by Ascend runs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "session/dump/directory.h"
#include "session/dump/dump_session.h"
#include "session/dump/metadata.h"

namespace msdbg::dump {
namespace {

void read_overflows(OverflowRecords& records) {
  if (records.flagged) return;
  records.flagged.emplace();
  const auto take = [&](const Result<std::vector<OverflowEntry>>& flagged) {
    if (!flagged) records.problem = flagged.status().message();
    else records.flagged->insert(records.flagged->end(), flagged->begin(), flagged->end());
  };
  for (const std::string& path : records.readable) take(read_overflow_record(path));
  for (const std::string& path : records.containers) take(read_overflow_container(path));
}

}  // namespace

Result<bool> DumpSession::operator_overflow(const TensorId& id) {
  const auto unsupported = [](std::string why) { return Status(Code::kUnsupported, std::move(why)); };
  bool recorded = false;
  for (const auto& [key, records] : data_.overflow) recorded = recorded || key.first == id.rank;
  if (!recorded) return unsupported("the run did not record overflow flags");
  const StepIndex* index = step_index(id.rank, id.graph, id.step);
  if (!index) return not_dumped(id);
  const auto found = data_.overflow.find({id.rank, id.step});
  if (found == data_.overflow.end()) return false;
  OverflowRecords& records = found->second;
  read_overflows(records);
  // The records contain a task and a stream; the kernel's own files have the same two numbers.
  bool numbered = false;
  const std::span<const Value> values = index->values_of(id.node);
  for (size_t at = 0; at < values.size(); ++at) {
    // Of each slot, the value of this execution, or the last one.
    const bool last = at + 1 == values.size() || values[at + 1].slot != values[at].slot;
    if (values[at].execution != id.execution && !(last && values[at].execution < id.execution)) continue;
    numbered = numbered || values[at].task != 0 || values[at].stream != 0;
    const auto own = [&](const OverflowEntry& entry) { return entry.task == values[at].task && entry.stream == values[at].stream; };
    if (std::any_of(records.flagged->begin(), records.flagged->end(), own)) return true;
  }
  if (!records.problem.empty()) return unsupported("an overflow record cannot be read: " + records.problem);
  if (!numbered) return unsupported("the kernel's files carry no task number to compare with the overflow records");
  return false;
}

Result<std::vector<OverflowRecord>> DumpSession::overflow_records(int rank, int64_t step) {
  std::vector<OverflowRecord> found;
  const auto recorded = data_.overflow.find({rank, step});
  if (recorded == data_.overflow.end()) return found;
  OverflowRecords& records = recorded->second;
  read_overflows(records);
  using Numbers = std::pair<int64_t, int64_t>;
  std::map<Numbers, const OverflowEntry*> open;
  for (const OverflowEntry& entry : *records.flagged) open.try_emplace({entry.task, entry.stream}, &entry);
  if (open.empty() && !records.problem.empty()) return Status(Code::kCorrupt, "an overflow record cannot be read: " + records.problem);
  std::set<Numbers> seen;
  for (auto at = data_.data.lower_bound({rank, 0}); at != data_.data.end() && at->first.first == rank; ++at) {
    const StepIndex* index = step_index(rank, at->first.second, step);
    if (index == nullptr) continue;
    std::map<std::pair<uint32_t, NodeId>, OverflowRecord> of_graph;  // by execution and node: one kernel has several files
    std::vector<std::pair<uint32_t, NodeId>> order;
    for (const Value& value : index->listed()) {
      const auto entry = value.task == 0 && value.stream == 0 ? open.end() : open.find({value.task, value.stream});
      if (entry == open.end()) continue;
      seen.insert(entry->first);
      const TensorId id{rank, at->first.second, step, value.execution, value.node, value.slot};
      const auto [place, fresh] = of_graph.try_emplace({value.execution, value.node});
      if (fresh) order.emplace_back(value.execution, value.node);
      OverflowRecord& record = place->second;
      const bool better = fresh || (record.tensor->slot.io == Io::kInput && value.slot.io == Io::kOutput);
      if (better) record = {rank, step, id, value.task, value.stream, entry->second->unit};
    }
    for (const auto& key : order) found.push_back(std::move(of_graph.at(key)));
  }
  for (const auto& [numbers, entry] : open) {
    if (!seen.contains(numbers)) found.push_back({rank, step, std::nullopt, entry->task, entry->stream, entry->unit});
  }
  return found;
}

}  // namespace msdbg::dump
