// Opens tensors of a dump in a process that has no session on it.
#pragma once

#include <string_view>

#include "msdbg/session.h"

namespace msdbg {

/// Opens a tensor by the location() that a session on a dump gave, in any process that sees the same files. Any thread.
Result<OpenTensor> open_located(const TensorId& id, std::string_view location);

}  // namespace msdbg
