// Opens tensors of a dump without a session on it: in another process, or for the files of another tool.
#pragma once

#include <memory>
#include <string_view>

#include "msdbg/session.h"

namespace msdbg {

/// Opens a tensor by the location() that a session on a dump gave, in any process that sees the same files. Any thread.
Result<OpenTensor> open_located(const TensorId& id, std::string_view location);

/// Opens the .npy file `info.source` and sets type, shape and size of `info` from its header. Null if its elements are not available:
/// `info.problem` has the reason. Any thread.
std::unique_ptr<ElementReader> open_npy(TensorInfo& info);

}  // namespace msdbg
