// Recorded calls in which ranks exchange values: what of their arguments is a value, and what is memory for values to come.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "session/msprobe/json_members.h"
#include "session/msprobe/names.h"
#include "session/msprobe/table.h"

namespace msdbg::msprobe {

/// True of calls such as `isend` and `all_reduce`.
bool is_exchange(const EntryName& call);

/// True of an argument that the call only writes to, such as the output of `all_gather_into_tensor`: whatever it held before is no
/// value of the training. `path`: "input_args.0" and what is in it, or "input_kwargs.output".
bool is_only_written(const EntryName& call, std::string_view path);

/// True of calls that receive from one other rank, such as `irecv`; of a batch, of its operations that do.
bool is_receive(const EntryName& call);

/// True of an argument that the call only reads, and that is recorded among its outputs, where all its arguments are: "output.1" and what
/// is in it. `before`: the outputs that were recorded before it.
bool is_only_read(const EntryName& call, std::string_view path, std::span<const Record> before);

/// The calls of a `batch_isend_irecv`, one for each of its operations and of the same name; none if `entry` is another call.
std::vector<CallRecord> read_batch(const EntryName& name, const JsonValue& entry);

}  // namespace msdbg::msprobe
