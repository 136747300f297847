// The word that names a tensor: `NODE:0[0:2,:]` is the tensor and a slice of it.
#pragma once

#include <fmt/format.h>

#include <string>

#include "msdbg/base.h"

namespace msdbg::app {

/// Moves the slice at the end of `tensor` to `slice`, unless an option has set that already.
inline Status take_slice(std::string_view command, std::string* tensor, std::string* slice) {
  const size_t open = tensor->rfind('[');
  const size_t end = tensor->find_first_not_of("0123456789:., -", open + 1);
  if (open == std::string::npos || (end != std::string::npos && tensor->substr(end) != "]")) return Status();
  if (!tensor->ends_with(']'))
    return Status(Code::kInvalidArgument, fmt::format("{}: the slice of '{}' has no ']'", command, *tensor));
  if (slice->empty()) *slice = tensor->substr(open + 1, tensor->size() - open - 2);
  tensor->erase(open);
  return Status();
}

}  // namespace msdbg::app
