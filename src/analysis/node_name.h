// The parts of an operator's name and type.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace msdbg {

/// `Default/ReLU` of `Default/ReLU-op7`.
inline std::string_view without_number(std::string_view name) {
  const size_t at = name.rfind("-op");
  if (at == std::string_view::npos || at + 3 == name.size()) return name;
  return name.find_first_not_of("0123456789", at + 3) == std::string_view::npos ? name.substr(0, at) : name;
}

inline bool has_any_word(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

}  // namespace msdbg
