#include <fmt/format.h>

#include <algorithm>

#include "msdbg/base.h"
#include "msdbg/terminal.h"

namespace msdbg {
namespace {

// The length of one of our colour sequences at the start of `text`, else 0: those of painted() and scripts/msdbg/plot.lua, and the
// reset sequence. Other sequences (hidden text, blinking) come from a file.
size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const size_t end = text.find_first_not_of("0123456789;", 2);
  if (end == std::string_view::npos || text[end] != 'm') return 0;
  std::string_view codes = text.substr(2, end - 2);
  if (codes.starts_with("38;5;") || codes.starts_with("48;5;")) {
    codes.remove_prefix(5);
    return !codes.empty() && codes.size() <= 3 && codes.find(';') == std::string_view::npos ? end + 1 : 0;
  }
  for (const std::string_view code : split(codes, ';')) {
    if (!code.empty() && code != "0" && code != "1" && code != "31" && code != "33") return 0;
  }
  return end + 1;
}

// The number of plain ASCII characters at the start of `text`.
size_t plain_length(std::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c >= 0x7F; });
  return static_cast<size_t>(end - text.begin());
}

// The length of the character at the start of `text`; 0 if it must not reach a terminal.
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
    size_t length = plain_length(text);
    if (length == 0) length = harmless_length(text);
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

std::string visible_json(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t plain = plain_length(text), length = plain > 0 ? plain : harmless_length(text);
    if (length > 0) {
      out += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) & 0x3FU : 0U; };
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t size = std::min<size_t>(text.size(), first < 0xC0 ? 1 : first < 0xE0 ? 2 : 3);
    const unsigned point = size == 1 ? first : size == 2 ? (first & 0x1FU) << 6 | byte(1) : (first & 0x0FU) << 12 | byte(1) << 6 | byte(2);
    out += fmt::format("\\u{:04x}", point);
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace msdbg
