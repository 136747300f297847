// Text tables for people, laid out for the available width.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/file.h"
#include "msdbg/report.h"
#include "msdbg/terminal.h"

namespace msdbg {

enum class Align : uint8_t { kLeft, kRight };
enum class Paint : uint8_t { kNone, kError, kWarning, kStrong };
std::string painted(std::string_view text, Paint paint, bool colour);
Paint paint_for(Severity severity);

/// How a column shrinks if a table is wider than the terminal.
enum class Fit : uint8_t {
  kKeep,  ///< never: numbers and short words
  kName,  ///< drops leading scopes of a name while it stays unique
  kText,  ///< cuts off the end
};

class Table {
 public:
  /// For a column that is dropped silently if it is empty and the table is too wide.
  static constexpr int kIfEmpty = -1;
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    Fit fit = Fit::kKeep;
    int drop = 0;  ///< the column with the largest number is dropped first; 0: never
    size_t least = 24;  ///< Fit::kText: columns that remain
  };
  struct Cell {
    std::string text;
    Paint paint = Paint::kNone;
    size_t least = 0;  ///< bytes at the end of a name that shortened forms must keep; 0: any suffix after `.../`
    Cell(std::string cell_text, Paint cell_paint = Paint::kNone)  // NOLINT(google-explicit-constructor)
        : text(std::move(cell_text)), paint(cell_paint) {}
    Cell(const char* cell_text) : text(cell_text) {}  // NOLINT(google-explicit-constructor)
    std::string elided;  ///< used if even that is too long
    static Cell name(std::string full, size_t least, Paint paint = Paint::kNone, std::string elided = "");
  };

  /// A cell as the table keeps it.
  struct CellView {
    std::string_view text, elided;
    size_t least = 0;
    Paint paint = Paint::kNone;
    CellView() = default;
    CellView(const Cell& cell)  // NOLINT(google-explicit-constructor)
        : text(cell.text), elided(cell.elided), least(cell.least), paint(cell.paint) {}
  };

  /// `numbered`: a first column counts the rows from 1.
  explicit Table(std::vector<Column> columns, bool numbered = false);
  void add(const std::vector<Cell>& row);
  /// Column `index` of those given is not printed.
  void hide(size_t index) { hidden_.insert(index + (numbered_ ? 1 : 0)); }
  bool empty() const { return count_ == 0; }
  /// The text with a line of titles, without trailing blanks. A name that does not fit its column is printed on its own line. The
  /// last line lists dropped columns.
  std::string text(const ReportStyle& style) const;
  /// The same piece by piece. Error: that of `write`.
  Status write(const ReportStyle& style, const TextSink& write) const;

 private:
  friend class TableLayout;
  void pack(const CellView& cell);
  void begin_block();
  /// Error: that of the file with the first rows.
  Status each_row(const std::function<void(std::span<const CellView>)>& take) const;
  void unpack(std::string_view block, const std::function<void(std::span<const CellView>)>& take) const;

  std::vector<Column> columns_;
  std::set<size_t> hidden_;
  // Packed cells, whole rows. A table may have millions: beyond some, the first ones are in a file.
  std::optional<File> file_;
  std::vector<size_t> sizes_;  // of the blocks in the file
  bool in_memory_ = false;     // no file could be written
  std::deque<std::string> blocks_;
  size_t count_ = 0;
  bool numbered_;
};

/// The suffix of a node's name in a table of tensors: nothing for output 0, `:input:1` and the like otherwise.
std::string slot_suffix(Slot slot);

/// The name of a node followed by `behind`: in full, or as short as the table needs it, but unique in the session.
Table::Cell name_cell(const Session& session, const TensorId& id, const std::string& behind = "", Paint paint = Paint::kNone);

/// `fc2.weight` for the gradient that its optimizer takes; "" for every other tensor.
std::string gradient_of_name(const Session& session, const TensorId& id);
/// The same as a cell for a column of Fit::kName.
Table::Cell gradient_of_cell(const Session& session, const TensorId& id);

/// The name of a node in a sentence: the shortest unique form.
std::string brief_name(const Session& session, std::string_view full_name);

/// `Log-op0:output:0`, with the node's full name if there is no width limit.
std::string tensor_name(const Session& session, const TensorId& id, const ReportStyle& style);

/// The longest form of the node's name, followed by `behind`, that fits a line after `before` columns; unique in the session.
std::string name_within(const Session& session, const TensorId& id, const std::string& behind, size_t before, const ReportStyle& style);

/// Fits a report to the width of the style; text outside tables is wrapped at blanks.
std::string fitted(std::string text, const ReportStyle& style);

}  // namespace msdbg
