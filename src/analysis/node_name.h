// The parts of an operator's name.
#pragma once

#include <string_view>

namespace msdbg {

/// `Default/ReLU` of `Default/ReLU-op7`.
inline std::string_view without_number(std::string_view name) {
  const size_t at = name.rfind("-op");
  if (at == std::string_view::npos || at + 3 == name.size()) return name;
  return name.find_first_not_of("0123456789", at + 3) == std::string_view::npos ? name.substr(0, at) : name;
}

}  // namespace msdbg
