// The dump.json of msprobe: the input is the file.
#include "fuzz/input.h"
#include "session/msprobe/table.h"
#include "session/msprobe/trace.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const msprobe::Table table = msprobe::read_table(text);
  for (const msprobe::CallRecord& call : table.calls) {
    for (const auto* records : {&call.inputs, &call.outputs, &call.parameters}) {
      for (const msprobe::Record& record : *records) {
        for (const bool rounded : {false, true}) {
          const Stats stats = msprobe::statistics_of(record, rounded);
          fuzz::require(stats.nan_count + stats.inf_count() <= std::max<uint64_t>(stats.count, 1), "more bad elements than elements");
          fuzz::require(stats.zero_count <= stats.count && stats.pos_count <= stats.count, "more elements than there are");
        }
        (void)msprobe::no_statistics(record);
      }
    }
  }
  (void)msprobe::read_stacks(text);
  (void)msprobe::read_callers(text);
  return 0;
}
