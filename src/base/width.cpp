// Measures text, finds the available width, and wraps lines.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "msdbg/base.h"
#include "msdbg/terminal.h"

namespace msdbg {
namespace {

constexpr size_t kLeastWidth = 60, kPlainWidth = 80, kMostWidth = 100'000;
constexpr size_t kLeastText = 24;  // columns reserved for text after a label

struct Range {
  uint32_t first, last;
};
constexpr Range kWide[] = {{0x1100, 0x115f},   {0x231a, 0x231b},   {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},
                           {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},
                           {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
                           {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
constexpr Range kCombining[] = {{0x0300, 0x036f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};

template <size_t N>
bool is_in(const Range (&ranges)[N], uint32_t code) {
  return std::ranges::any_of(ranges, [code](const Range& range) { return code >= range.first && code <= range.last; });
}

struct Character {
  size_t bytes, columns;
};

// The first character of a nonempty text. An invalid byte counts as one character.
Character character_at(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.starts_with("\x1b[")) {
    const size_t end = text.find_first_not_of("0123456789;", 2);
    if (end != std::string_view::npos && text[end] == 'm') return {end + 1, 0};
  }
  const size_t size = byte(0) < 0xc0 ? 1 : byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (size == 1) return {1, 1};
  uint32_t code = byte(0) & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size() || (byte(i) & 0xc0) != 0x80) return {i, 1};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  return {size, is_in(kCombining, code) ? 0u : is_in(kWide, code) ? 2u : 1u};
}

std::optional<size_t> number_of(const char* variable) {
  const char* value = std::getenv(variable);
  const auto number = value == nullptr ? std::nullopt : parse_int(value);
  if (!number || *number < 1) return std::nullopt;
  return std::min<size_t>(static_cast<size_t>(*number), kMostWidth);
}

// The indentation of continuation lines: below the text after its label, or slightly more than the first line.
size_t continuation(std::string_view line, size_t width) {
  const size_t first = std::min(line.find_first_not_of(' '), line.size());
  if (line.substr(first).starts_with("next: ")) return first + 6;
  const size_t gap = line.find("  ", first);
  if (gap != std::string_view::npos) {
    const size_t text = std::min(line.find_first_not_of(' ', gap), line.size());
    const size_t column = display_width(line.substr(0, text));
    if (text < line.size() && column + kLeastText <= width && column <= width / 2) return column;
  }
  return first + 2;
}

std::string wrapped_line(std::string_view line, size_t width) {
  const std::string indent(continuation(line, width), ' ');
  const bool command = line.substr(std::min(line.find_first_not_of(' '), line.size())).starts_with("next: msdbg ");
  const size_t room = width - (command ? 2 : 0);
  std::string out;
  size_t used = 0, begin = 0;  // width of the current line; where its first word began
  const std::string_view quotes = "'\"";
  for (size_t at = 0; at < line.size();) {
    size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    size_t end = word;
    char quote = 0;
    for (; end < line.size() && (quote != 0 || line[end] != ' '); ++end) {
      // A quoted word in a command is one word.
      if (command && quote == 0 && quotes.find(line[end]) != std::string_view::npos) quote = line[end];
      else if (line[end] == quote) quote = 0;
    }
    const size_t blanks = word - at, columns = display_width(line.substr(word, end - word));
    const bool is_last = line.find_first_not_of(' ', end) == std::string_view::npos;
    if (used > begin && used + blanks + columns > (is_last ? width : room)) {
      out += (command ? " \\\n" : "\n") + indent;
      used = begin = indent.size();
      // A name that is too long for the space after a label still fits on its own line.
      if (columns + used > width && columns <= width) {
        out.resize(out.size() - used);
        used = begin = width - columns;
        out += std::string(used, ' ');
      }
    } else {
      out += line.substr(at, blanks);
      used += blanks;
      if (begin == 0 && used == blanks) begin = used;
    }
    out += line.substr(word, end - word);
    used += columns;
    at = end;
  }
  return out;
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Character next = character_at(text);
    width += next.columns;
    text.remove_prefix(next.bytes);
  }
  return width;
}

std::string_view head(std::string_view text, size_t columns) {
  size_t at = 0;
  while (at < text.size()) {
    const Character next = character_at(text.substr(at));
    if (next.columns > columns) break;
    columns -= next.columns;
    at += next.bytes;
  }
  return text.substr(0, at);
}

std::optional<size_t> layout_width() {
  const auto least = [](size_t width) { return std::max(width, kLeastWidth); };
  if (const auto asked = number_of("MSDBG_WIDTH")) return least(*asked);
  if (::isatty(STDOUT_FILENO) == 0) return std::nullopt;
  if (const auto columns = number_of("COLUMNS")) return least(*columns);
  struct winsize size = {};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return least(known ? size.ws_col : kPlainWidth);
}

std::string wrapped(std::string_view text, size_t width) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    // The number of bytes is never smaller than the number of columns.
    out += line.size() <= width || display_width(line) <= width ? std::string(line) : wrapped_line(line, width);
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace msdbg
