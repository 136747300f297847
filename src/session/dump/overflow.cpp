// The hardware's overflow flags, recorded by Ascend runs.
#include <fmt/format.h>

#include <algorithm>

#include "session/dump/directory.h"
#include "session/dump/dump_session.h"
#include "session/dump/metadata.h"

namespace msdbg::dump {

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
  if (!records.flagged) {
    records.flagged.emplace();
    const auto take = [&](const Result<std::vector<std::pair<int64_t, int64_t>>>& flagged) {
      if (!flagged) records.problem = flagged.status().message();
      else records.flagged->insert(records.flagged->end(), flagged->begin(), flagged->end());
    };
    for (const std::string& path : records.readable) take(read_overflow_record(path));
    for (const std::string& path : records.containers) take(read_overflow_container(path));
  }
  // The records contain a task and a stream; the kernel's own files have the same two numbers.
  bool numbered = false;
  const std::span<const Value> values = index->values_of(id.node);
  for (size_t at = 0; at < values.size(); ++at) {
    // Of each slot, the value of this execution, or the last one.
    const bool last = at + 1 == values.size() || values[at + 1].slot != values[at].slot;
    if (values[at].execution != id.execution && !(last && values[at].execution < id.execution)) continue;
    numbered = numbered || values[at].task != 0 || values[at].stream != 0;
    const std::pair<int64_t, int64_t> own(values[at].task, values[at].stream);
    if (std::find(records.flagged->begin(), records.flagged->end(), own) != records.flagged->end()) return true;
  }
  if (!records.problem.empty()) return unsupported("an overflow record cannot be read: " + records.problem);
  if (!numbered) return unsupported("the kernel's files carry no task number to compare with the overflow records");
  return false;
}

}  // namespace msdbg::dump
