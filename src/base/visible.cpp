#include <fmt/format.h>

#include "msdbg/base.h"
#include "msdbg/terminal.h"

namespace msdbg {
namespace {

// The length of `ESC [ 1 ; 31 m` at the beginning of `text`, else 0.
size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

// The length of the character at the beginning of `text`, 0 where it must not reach a terminal.
size_t harmless_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first == '\n' || first == '\t') return 1;
  const size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const std::string_view character = text.substr(0, length);
  return printable(character) == character ? character.size() : 0;
}

}  // namespace

std::string visible(std::string_view text, bool colours) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const bool plain = text[0] >= ' ' && text[0] < 0x7F;
    size_t length = plain ? 1 : harmless_length(text);
    if (length == 0 && colours) length = colour_length(text);
    if (length > 0) {
      out += text.substr(0, length);
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      length = 1;
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace msdbg
