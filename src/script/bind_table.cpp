// Tables filled by Lua and laid out by the report module: all tables shrink in the same way.
#include <fmt/format.h>

#include "msdbg/table.h"
#include "script/objects.h"
#include "script/state.h"

namespace msdbg::script {
namespace {

Table::Column column_at(lua_State* L, int index, const std::string& what) {
  OptionTable options(L, index, what);
  Table::Column column;
  column.title = printable(options.text("title").value_or(""));
  column.align = options.text("align").value_or("left") == "right" ? Align::kRight : Align::kLeft;
  const std::string fit = options.text("fit").value_or("keep");
  column.fit = fit == "name" ? Fit::kName : fit == "text" ? Fit::kText : Fit::kKeep;
  column.drop = static_cast<int>(options.integer("drop", 0, 100).value_or(0));
  column.least = static_cast<size_t>(options.integer("least", 1, 1000).value_or(static_cast<int64_t>(column.least)));
  options.finish();
  return column;
}

Paint paint_at(lua_State* L, int index, const std::string& what) {
  const std::string word = text_field(L, index, "paint");
  if (word.empty()) return Paint::kNone;
  for (const auto& [name, paint] : {std::pair("error", Paint::kError), std::pair("warning", Paint::kWarning),
                                    std::pair("strong", Paint::kStrong), std::pair("info", Paint::kNone)}) {
    if (word == name) return paint;
  }
  misuse(fmt::format("{}: paint is error, warning, strong or info, not '{}'", what, printable(word)));
}

// A text; { text, paint = "error" }; or a name of the session with the results of core.short_node_name(): { "Default/fc1/MatMul-op0",
// "MatMul-op0", "MatMul-op0" }.
Table::Cell cell_at(lua_State* L, int index, const std::string& what) {
  if (lua_type(L, index) != LUA_TTABLE) return Table::Cell(printable(text_argument(L, index, what)));
  const std::vector<std::string> forms = list_argument<std::string>(L, index, what);
  const Paint paint = paint_at(L, index, what);
  if (forms.size() == 1) return Table::Cell(printable(forms[0]), paint);
  if (forms.size() != 3) misuse(fmt::format("{}: a name, its ending and its elided form are expected", what));
  return Table::Cell::name(printable(forms[0]), printable(forms[1]).size(), paint, printable(forms[2]));
}

// core.table_text(columns, rows, width, [plain]) -> text; a column is { title, align, fit, drop, least }, a cell is a text or a name;
// width 0: the width of the terminal; plain: without colour even where the terminal has it
int table_text(lua_State* L) {
  std::vector<Table::Column> columns;
  for_each_element(L, 1, "table: columns", [&](int i) { columns.push_back(column_at(L, -1, fmt::format("table: column {}", i))); });
  const size_t width = columns.size();
  Table table(std::move(columns));
  for_each_element(L, 2, "table: rows", [&](int row) {
    std::vector<Table::Cell> cells;
    for_each_element(L, -1, "table: row", [&](int i) { cells.push_back(cell_at(L, -1, fmt::format("table: row {}: cell {}", row, i))); });
    if (cells.size() > width) misuse(fmt::format("table: row {} has {} cells for {} columns", row, cells.size(), width));
    cells.resize(width, Table::Cell(""));
    table.add(std::move(cells));
  });
  ReportStyle style = table_style(L);
  style.place = Place::kScript;
  style.colour = wants_colour(vm_of(L)) && !truth_at(L, 4);
  if (const double asked = number_argument(L, 3, "table: width"); asked >= 1)
    style.width = asked < 1e9 ? static_cast<size_t>(asked) : ReportStyle::kAnyWidth;
  return give(L, without_last_newline(table.text(style)));
}

}  // namespace

void bind_table(lua_State* L) { add_functions(L, {{"table_text", guard<table_text>}}); }

}  // namespace msdbg::script
