// Who made an input: no identity of a tensor is recorded, so this compares values.
//
// Measured on dumps where the addresses of the memory were recorded too: right for all but constants and tensors of one element, which
// get no edge here, nor do tensors with NaN.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "session/msprobe/table.h"

namespace msdbg::msprobe {

inline constexpr uint32_t kNoCall = UINT32_MAX;

/// The maker of an input: an output of an earlier call, or a parameter.
struct Maker {
  uint32_t call = kNoCall;    ///< in the table; kNoCall if unknown
  uint32_t slot = 0;          ///< output of the call, or place among its parameters
  bool parameter = false;     ///< `call` is a module, and this is its parameter
};

/// What the search needs to know of a call besides its values.
struct CallPlace {
  bool module = false;     ///< a module whose calls are recorded, too: its outputs are theirs
  bool in_place = false;
  bool gradients = false;  ///< the gradients of parameters: no inputs, and outputs that the backward pass made
  bool optimizer = false;  ///< works on one parameter; others may have equal statistics, such as weights that began as ones
  std::string_view path;   ///< of a module; it lives as long as the search
  uint32_t begin = 0;      ///< first call that ran in it; its own number otherwise
};

/// The makers of all inputs: by call, then by input. For the gradients of parameters those of the outputs.
std::vector<std::vector<Maker>> find_makers(const std::vector<CallRecord>& calls, const std::vector<CallPlace>& places);

}  // namespace msdbg::msprobe
