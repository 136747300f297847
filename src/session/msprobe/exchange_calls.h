// Recorded calls in which ranks exchange values: what of their arguments is a value, and what is memory for values to come.
#pragma once

#include <string_view>
#include <vector>

#include "session/msprobe/json_members.h"
#include "session/msprobe/names.h"
#include "session/msprobe/table.h"

namespace msdbg::msprobe {

/// True of an argument that the call only writes to, such as the output of `all_gather_into_tensor`: whatever it held before is no
/// value of the training. `path`: "input_args.0" and what is in it, or "input_kwargs.output".
bool is_only_written(const EntryName& call, std::string_view path);

/// The calls of a `batch_isend_irecv`, one for each of its operations and of the same name; none if `entry` is another call.
std::vector<CallRecord> read_batch(const EntryName& name, const JsonValue& entry);

}  // namespace msdbg::msprobe
