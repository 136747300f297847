// Tables of text for people, laid out for the width that they have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msdbg/report.h"
#include "msdbg/terminal.h"

namespace msdbg {

enum class Align : uint8_t { kLeft, kRight };
enum class Paint : uint8_t { kNone, kError, kWarning, kStrong };
std::string painted(std::string_view text, Paint paint, bool colour);
Paint paint_for(Severity severity);

/// How a column gives way where a table is wider than the terminal.
enum class Fit : uint8_t {
  kKeep,  ///< not at all: numbers and short words
  kName,  ///< leading scopes of a name go, as long as it stays unique
  kText,  ///< the end is cut off
};

class Table {
 public:
  /// A column that is left out where it is empty and the table too wide, without a word about it.
  static constexpr int kIfEmpty = -1;
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    Fit fit = Fit::kKeep;
    int drop = 0;  ///< the column with the largest number is left out first; 0: never
    size_t least = 24;  ///< Fit::kText: columns that remain
  };
  struct Cell {
    std::string text;
    Paint paint = Paint::kNone;
    size_t least = 0;  ///< bytes at the end of a name that no shortened form loses; 0: any ending will do, behind `.../`
    Cell(std::string cell_text, Paint cell_paint = Paint::kNone)  // NOLINT(google-explicit-constructor)
        : text(std::move(cell_text)), paint(cell_paint) {}
    Cell(const char* cell_text) : text(cell_text) {}  // NOLINT(google-explicit-constructor)
    std::string elided;  ///< where even that is too long
    static Cell name(std::string full, size_t least, Paint paint = Paint::kNone, std::string elided = "");
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  /// With a line of titles; no blanks at the ends of lines. A name that does not fit its column stands on a line of its own. The last
  /// line names the columns that were left out.
  std::string text(const ReportStyle& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// What follows a node's name in a table of tensors: nothing for its output 0, `:input:1` and the like otherwise.
std::string slot_behind(Slot slot);

/// The name of a node with `behind` after it: in full, or as short as the table needs it and still unique in the session.
Table::Cell name_cell(const Session& session, const TensorId& id, const std::string& behind = "", Paint paint = Paint::kNone);

/// The name of a node in a sentence: as short as it can be and still unique.
std::string brief_name(const Session& session, std::string_view full_name);

/// `Log-op0:output:0`, with the full name of the node where there is room for any.
std::string tensor_name(const Session& session, const TensorId& id, const ReportStyle& style);

/// The longest form of the node's name, with `behind` after it, that fits the line behind `before` columns; unique in the session.
std::string name_within(const Session& session, const TensorId& id, const std::string& behind, size_t before, const ReportStyle& style);

/// A report for the width of the style; what is no table is broken at blanks.
std::string fitted(std::string text, const ReportStyle& style);

}  // namespace msdbg
