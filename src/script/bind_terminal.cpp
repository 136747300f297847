// The environment for Lua: terminal, locale, clock; and how the program formats numbers.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "msdbg/terminal.h"
#include "script/state.h"

namespace msdbg::script {
namespace {

constexpr size_t kPlainWidth = 100;  // without a terminal to ask

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Like setlocale(): uses the first of the three that is set.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = variable(name);
    if (!value.empty()) return contains_nocase(value, "utf-8") || contains_nocase(value, "utf8");
  }
  return false;
}

// core.visible(text): the text without control sequences; keeps colours if the output has any
int visible_text(lua_State* L) {
  return give(L, visible(text_argument(L, 1, "visible: text"), wants_colour(vm_of(L))));
}

// The width for layout; redirected output has no terminal width.
std::optional<size_t> columns_of(const Vm& vm) { return vm.captured > 0 ? std::nullopt : layout_width(); }

// core.terminal() -> {captured, width, limit, colour, unicode, output_tty, error_tty}; read every time, because windows change.
// Pictures are `width` columns wide; no line of text is longer than `limit`, which is math.huge for a pipe or a file.
int terminal(lua_State* L) {
  lua_createtable(L, 0, 7);
  set_field(L, "captured", vm_of(L).captured > 0);
  const std::optional<size_t> columns = columns_of(vm_of(L));
  set_field(L, "width", columns.value_or(kPlainWidth));
  set_field(L, "limit", columns ? static_cast<double>(*columns) : std::numeric_limits<double>::infinity());
  set_field(L, "colour", wants_colour(vm_of(L)));
  set_field(L, "unicode", locale_is_utf8() && variable("MSDBG_ASCII") != "1");
  set_field(L, "output_tty", ::isatty(STDOUT_FILENO) != 0);
  set_field(L, "error_tty", ::isatty(STDERR_FILENO) != 0);
  return 1;
}

// core.seconds(): a steady clock with an arbitrary zero
int seconds(lua_State* L) {
  lua_pushnumber(L, std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
  return 1;
}

int short_number(lua_State* L) {
  const int64_t digits = integer_argument(L, 2, "format.number: digits", 4, 1, 17);
  return give(L, format_short(number_argument(L, 1, "format.number: value"), static_cast<int>(digits)));
}

int exact_number(lua_State* L) {
  return give(L, format_double(number_argument(L, 1, "format.exact: value")));
}

int byte_count(lua_State* L) {
  const double bytes = number_argument(L, 1, "format.bytes: count");
  if (!(bytes >= 0 && bytes < 1.8e19)) misuse(fmt::format("format.bytes: count: 0 or more is expected, not {}", format_double(bytes)));
  return give(L, format_bytes(static_cast<uint64_t>(bytes)));
}

int text_width(lua_State* L) {
  return give(L, display_width(text_argument(L, 1, "format.width: text")));
}

// core.head(text, columns)
int text_head(lua_State* L) {
  const int64_t columns = integer_argument(L, 2, "format.head: width", {}, 0, std::numeric_limits<int32_t>::max());
  return give(L, head(text_argument(L, 1, "format.head: text"), static_cast<size_t>(columns)));
}

// core.wrapped(text): lines wrapped for the terminal
int wrapped_text(lua_State* L) {
  const std::string text = text_argument(L, 1, "wrapped: text");
  const std::optional<size_t> columns = columns_of(vm_of(L));
  return give(L, columns ? wrapped(text, *columns) : text);
}

int printable_text(lua_State* L) {
  return give(L, printable(text_argument(L, 1, "printable: text")));
}

// core.number_in(set, number, what) -> boolean; the set has the forms of `steps = "0:10"`
int number_in(lua_State* L) {
  const IntSet set = numbers_argument(L, 1, text_argument(L, 3, "number_in: what"));
  lua_pushboolean(L, set.contains(integer_argument(L, 2, "number_in: number")));
  return 1;
}

// core.dtype_facts(name) -> table; nil for an unknown dtype
int dtype_facts(lua_State* L) {
  const DType dtype = dtype_from_name(text_argument(L, 1, "dtype: name"));
  if (!is_evaluable(dtype)) return lua_pushnil(L), 1;
  lua_createtable(L, 0, 6);
  set_field(L, "name", dtype_name(dtype));
  set_field(L, "bits", item_size(dtype) * 8);
  set_field(L, "is_float", is_float(dtype));
  set_field(L, "max", dtype_max(dtype));
  if (is_float(dtype)) {
    set_field(L, "min_normal", dtype_min_normal(dtype));
    set_field(L, "eps", dtype_eps(dtype));
  }
  return 1;
}

}  // namespace

ReportStyle table_style(lua_State* L) {
  ReportStyle style;
  style.width = columns_of(vm_of(L)).value_or(ReportStyle::kAnyWidth);
  style.place = vm_of(L).at_prompt ? Place::kPrompt : Place::kScript;
  return style;
}

bool wants_colour(const Vm& vm) {
  if (vm.captured > 0) return false;
  if (vm.options.colour) return *vm.options.colour;
  return variable("NO_COLOR").empty() && ::isatty(STDOUT_FILENO) && !variable("TERM").empty() && variable("TERM") != "dumb";
}

void bind_terminal(lua_State* L) {
  add_functions(L, {{"terminal", guard<terminal>}, {"seconds", guard<seconds>}, {"short_number", guard<short_number>},
                    {"exact_number", guard<exact_number>}, {"byte_count", guard<byte_count>}, {"printable", guard<printable_text>},
                    {"width", guard<text_width>}, {"head", guard<text_head>}, {"wrapped", guard<wrapped_text>},
                    {"visible", guard<visible_text>}, {"number_in", guard<number_in>}, {"dtype_facts", guard<dtype_facts>}});
}

}  // namespace msdbg::script
