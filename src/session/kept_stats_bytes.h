// Kept statistics as bytes, for what outlives a session or comes from another process: little endian, whatever the machine.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "msdbg/bytes.h"
#include "session/stats_cache.h"

namespace msdbg {

/// The ranges and tolerances of a request, without `change` and `bits`.
void write_counts(ByteWriter& out, const StatsRequest& request);
void read_counts(ByteReader& in, StatsRequest& request);

/// Without what every session knows: the id, the source and the format. Precondition: the elements were available.
std::string encode(const KeptStats& entry);
/// `info`: of the tensor that the entry belongs to, as far as it is known without reading it.
/// Error: kCorrupt, also for the format of another version.
Result<std::shared_ptr<KeptStats>> decode(std::string_view bytes, TensorInfo info);
/// True if an entry holds only as long as the previous value is the same.
bool depends_on_previous(std::string_view bytes);

}  // namespace msdbg
