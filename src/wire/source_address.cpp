// Parses the code stacks of NodeProto.source_address. Source: info.cc and trace_base.cc of MindSpore write them; the format of a
// location changed in 1.9 (`(12)` to `:12`) and in 2.3 (columns, last line).
#include <charconv>

#include "msdbg/wire.h"

namespace msdbg {
namespace {

bool eat(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool eat_number(std::string_view& text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

struct Location {
  int line = 0;
  bool has_last_line = false;
  std::string_view rest;  ///< after the location: empty or from the '/' on
};

// `(12)`, `:12`, `:12~14`, `:12, 4~19`, `:12~14, 4~19` at the start of `text`, then a '/' or the end.
bool parse_location(std::string_view text, Location& out) {
  out = {};
  int ignored = 0;
  if (eat(text, "(")) {
    if (!eat_number(text, out.line) || !eat(text, ")")) return false;
  } else {
    if (!eat(text, ":") || !eat_number(text, out.line)) return false;
    if (eat(text, "~")) {
      if (!eat_number(text, ignored)) return false;
      out.has_last_line = true;
    }
    if (eat(text, ", ") && (!eat_number(text, ignored) || !eat(text, "~") || !eat_number(text, ignored))) return false;
  }
  out.rest = text;
  return text.empty() || text.front() == '/';
}

bool opens_function(std::string_view code) {
  return code.starts_with("def ") || code.starts_with("async def ") || code.starts_with("@");
}

}  // namespace

std::vector<StackFrame> parse_source_address(std::string_view text) {
  std::vector<StackFrame> frames;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (eat(line, "#")) line = trim(line);
    if (eat(line, "- ")) line = trim(line);
    eat(line, "inlined:");
    if (!eat(line, "In file ")) continue;  // a section heading
    // The path may contain any character; it ends where the first location starts.
    Location location;
    size_t at = line.find_first_of("(:", 1);
    while (at != std::string_view::npos && !parse_location(line.substr(at), location))
      at = line.find_first_of("(:", at + 1);
    if (at == std::string_view::npos) continue;
    std::string_view code = location.rest;
    eat(code, "/");
    if (code.ends_with('/')) code.remove_suffix(1);
    code = trim(code);
    // Since 2.3 every call is followed by the whole enclosing function, which adds nothing.
    if (location.has_last_line && opens_function(code)) continue;
    frames.push_back({std::string(line.substr(0, at)), location.line > 0 ? location.line : 0, std::string(code)});
  }
  return frames;
}

}  // namespace msdbg
