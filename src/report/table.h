// Columns of text with cells that may be shortened; the pieces that every table shares.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msdbg/report.h"

namespace msdbg {

/// Columns that a text takes on a terminal; a code point counts one.
size_t display_width(std::string_view text);

/// The first columns of a text; a character is never cut.
std::string_view head(std::string_view text, size_t columns);

/// At most `width` columns: leading scopes go first (`.../fc2-Dense/MatMul-op0`), then the middle of what remains.
std::string shorten(std::string_view name, size_t width);

enum class Align : uint8_t { kLeft, kRight };
enum class Paint : uint8_t { kNone, kError, kWarning, kStrong };
std::string painted(std::string_view text, Paint paint, bool colour);
Paint paint_for(Severity severity);

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool shrinks = false;  ///< shrinks when the table is wider than the terminal
  };
  struct Cell {
    std::string text;
    Paint paint = Paint::kNone;
    Cell(std::string cell_text, Paint cell_paint = Paint::kNone)  // NOLINT(google-explicit-constructor)
        : text(std::move(cell_text)), paint(cell_paint) {}
    Cell(const char* cell_text) : text(cell_text) {}  // NOLINT(google-explicit-constructor)
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  /// With a line of titles; no blanks at the ends of lines.
  std::string text(const ReportStyle& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// Lines of a message, each made printable, the further ones indented equally, which keeps a caret in its place.
std::string lines_text(std::string_view text);

/// "1 hit", "3 hits".
std::string counted(uint64_t n, std::string_view word);
/// "104 of 192 elements are -Inf, none NaN"; the statistics where all are finite.
std::string bad_text(const Stats& stats);
/// A word as a POSIX shell takes it.
std::string shell_word(std::string_view text);
/// user_frame() as "train.py:70", "" without a stack; `full` keeps the directories.
std::string source_place(const Node& node, bool full);
/// The lines `not checked: 2 of 136 tensors ...`, one per reason and some tensors; "" without entries.
std::string not_checked_text(const Session& session, const std::vector<NotChecked>& entries, const Coverage& coverage,
                             bool wide);

}  // namespace msdbg
