// An entry of kept statistics, as an index or another process provides it: the input is the entry.
#include "fuzz/input.h"
#include "session/kept_stats_bytes.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto decoded = decode({reinterpret_cast<const char*>(data), size}, {});
  if (!fuzz::good(decoded)) return 0;
  const KeptStats& entry = **decoded;
  fuzz::require(element_count(entry.info.shape) == entry.info.count && entry.stats.count == entry.info.count,
                "a count that is not that of the shape");
  fuzz::require(entry.stats.nan_count + entry.stats.inf_count() <= entry.stats.count, "more elements than the tensor has");
  const std::string bytes = encode(entry);
  const auto again = decode(bytes, {});
  fuzz::require(fuzz::good(again) && encode(**again) == bytes, "an entry that changes when it is written and read again");
  return 0;
}
