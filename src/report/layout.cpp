// Fits a table to the available width.
#include <fmt/format.h>

#include <algorithm>

#include "msdbg/gradients.h"
#include "msdbg/table.h"

namespace msdbg {
namespace {

constexpr size_t kGap = 2, kLeastText = 8;

std::string last_bytes(std::string_view text, size_t bytes) { return std::string(text.substr(text.size() - std::min(bytes, text.size()))); }

// The longest form of a name that fits: whole components from the end. If none fits, the shortest allowed form.
std::string name_for(const Table::CellView& cell, size_t width) {
  const std::string_view name = cell.text;
  if (display_width(name) <= width) return std::string(name);
  const std::string mark = cell.least == 0 ? ".../" : "";
  const size_t last = cell.least == 0 ? name.find_last_of('/') : name.size() - std::min(cell.least, name.size());
  for (size_t slash = name.find('/'); slash != std::string_view::npos && slash < last; slash = name.find('/', slash + 1)) {
    const std::string shorter = mark + std::string(name.substr(slash + 1));
    if (display_width(shorter) <= width) return shorter;
  }
  if (cell.least > 0) {
    std::string shortest = last_bytes(name, cell.least);
    return cell.elided.empty() || display_width(shortest) <= width ? shortest : std::string(cell.elided);
  }
  return last == std::string_view::npos ? std::string(name) : mark + std::string(name.substr(last + 1));
}

std::string text_for(std::string_view text, size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::string cut(head(text, width - 1));
  cut.erase(cut.find_last_not_of(' ') + 1);
  return cut + "\u2026";
}

}  // namespace

class TableLayout {
 public:
  using Row = std::span<const Table::CellView>;

  TableLayout(const Table& table, const ReportStyle& style)
      : table_(table), columns_(table.columns_), style_(style), limit_(style.columns()) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!table.hidden_.contains(i)) shown_.push_back(i);
      natural_.push_back(display_width(columns_[i].title));
    }
    filled_.resize(columns_.size());
    read_ = table.each_row([&](Row row) {
      for (const size_t i : shown_) {
        natural_[i] = std::max(natural_[i], display_width(row[i].text));
        filled_[i] = filled_[i] || !row[i].text.empty();
      }
    });
    widths_ = natural_;
    if (total(natural_) > limit_) fit();
  }

  Status write(const TextSink& write) const {
    constexpr size_t kPiece = size_t{1} << 16;
    std::vector<Table::CellView> titles(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) titles[i].text = columns_[i].title;
    std::string out;
    if (!read_.ok()) return read_;
    Status written;
    if (std::any_of(shown_.begin(), shown_.end(), [&](size_t i) { return !titles[i].text.empty(); })) add_line(titles, out);
    const Status read = table_.each_row([&](Row row) {
      if (!written.ok()) return;
      add_line(row, out);
      if (out.size() < kPiece) return;
      written = write(out);
      out.clear();
    });
    if (!written.ok()) return written;
    if (!read.ok()) return read;
    if (!left_out_.empty()) {
      std::vector<std::string> names;
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (std::find(left_out_.begin(), left_out_.end(), i) != left_out_.end()) names.push_back(columns_[i].title);
      }
      out += fmt::format("columns left out: {}{}\n", fmt::join(names, ", "), style_.place == Place::kScript ? "" : " (--wide)");
    }
    return write(out);
  }

 private:
  size_t total(const std::vector<size_t>& widths) const {
    size_t sum = shown_.empty() ? 0 : kGap * (shown_.size() - 1);
    for (const size_t i : shown_) sum += widths[i];
    return sum;
  }

  // The minimum width of a column. A few long names do not decide for all: they get lines of their own.
  size_t least(size_t i) const {
    const Table::Column& column = columns_[i];
    const size_t title = display_width(column.title);
    if (column.fit == Fit::kText) return std::min(natural_[i], std::max(title, column.least));
    if (column.fit == Fit::kKeep) return natural_[i];
    std::vector<size_t> names;
    (void)table_.each_row([&](Row row) { names.push_back(display_width(shortest(row[i]))); });
    if (names.empty()) return title;
    const auto most = names.begin() + static_cast<ptrdiff_t>((names.size() - 1) * 9 / 10);
    std::nth_element(names.begin(), most, names.end());
    return std::max(title, std::min(*most, limit_ / 2));
  }

  std::string shortest(const Table::CellView& cell) const {
    if (cell.least == 0) return name_for(cell, 0);
    const std::string ending = last_bytes(cell.text, cell.least);
    return cell.elided.empty() || display_width(ending) <= limit_ / 2 ? ending : std::string(cell.elided);
  }

  void fit() {
    std::erase_if(shown_, [&](size_t i) { return columns_[i].drop != 0 && !filled_[i]; });
    for (const size_t i : shown_) widths_[i] = least(i);
    while (total(widths_) > limit_) {
      size_t next = columns_.size();
      for (const size_t i : shown_) {
        if (columns_[i].drop > 0 && (next == columns_.size() || columns_[i].drop >= columns_[next].drop)) next = i;
      }
      if (next == columns_.size()) break;
      std::erase(shown_, next);
      left_out_.push_back(next);
    }
    shrink(Fit::kText, kLeastText);
    shrink(Fit::kName, kLeastText);
    // Text has priority over the scopes of a name; columns that lack little come first.
    for (const Fit fit : {Fit::kText, Fit::kName}) {
      std::vector<size_t> order = shown_;
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return natural_[a] - widths_[a] < natural_[b] - widths_[b]; });
      for (const size_t i : order) {
        const size_t used = total(widths_);
        if (columns_[i].fit == fit && used < limit_) widths_[i] = std::min(natural_[i], widths_[i] + limit_ - used);
      }
    }
    // Names are shortened by whole scopes: their column may need less than it has.
    for (const size_t i : shown_) {
      if (columns_[i].fit != Fit::kName) continue;
      size_t needed = display_width(columns_[i].title);
      (void)table_.each_row([&](Row row) { needed = std::max(needed, display_width(name_for(row[i], widths_[i]))); });
      widths_[i] = std::min(widths_[i], needed);
    }
  }

  void shrink(Fit fit, size_t least_width) {
    for (const size_t i : shown_) {
      const size_t used = total(widths_);
      const size_t least = std::max(least_width, display_width(columns_[i].title));
      if (columns_[i].fit == fit && used > limit_ && widths_[i] > least) widths_[i] -= std::min(used - limit_, widths_[i] - least);
    }
  }

  void add_line(Row cells, std::string& out) const {
    size_t used = 0, begin = 0;  // width of the last line; where the cell begins
    for (const size_t i : shown_) {
      const Table::Column& column = columns_[i];
      const std::string text = column.fit == Fit::kName   ? name_for(cells[i], widths_[i])
                               : column.fit == Fit::kText ? text_for(cells[i].text, widths_[i])
                                                          : std::string(cells[i].text);
      const size_t width = display_width(text);
      const size_t pad = widths_[i] > width ? widths_[i] - width : 0;
      const size_t at = begin + (column.align == Align::kRight ? pad : 0);
      if (width > 0 && used > 0 && used >= at) {
        out += '\n';
        used = 0;
      }
      if (width > 0) {
        out.append(at - used, ' ').append(painted(text, cells[i].paint, style_.colour));
        used = at + width;
      }
      begin += widths_[i] + kGap;
    }
    out += '\n';
  }

  const Table& table_;
  const std::vector<Table::Column>& columns_;
  const ReportStyle& style_;
  const size_t limit_;
  std::vector<size_t> shown_, left_out_;  // indices of columns
  std::vector<bool> filled_;  // by column: a row has text in it
  Status read_;               // of the rows, when the widths were measured
  std::vector<size_t> natural_, widths_;
};

Table::Cell Table::Cell::name(std::string full, size_t least, Paint paint, std::string elided) {
  Cell cell(std::move(full), paint);
  cell.least = least;
  cell.elided = std::move(elided);
  return cell;
}

Status Table::write(const ReportStyle& style, const TextSink& write) const { return TableLayout(*this, style).write(write); }

std::string Table::text(const ReportStyle& style) const {
  std::string out;
  const Status written = write(style, [&](std::string_view piece) { return out += piece, Status(); });
  MSDBG_CHECK(written.ok());
  return out;
}

Table::Cell name_cell(const Session& session, const TensorId& id, const std::string& behind, Paint paint) {
  const std::string& full = session.node(id).name;
  const std::string ending = printable(short_name(session, full)), elided = printable(elided_name(session, full));
  return Table::Cell::name(printable(full) + behind, ending.size() + behind.size(), paint, elided == ending ? "" : elided + behind);
}

std::string slot_suffix(Slot slot) { return slot == Slot{} ? "" : ":" + slot_name(slot); }

std::string name_within(const Session& session, const TensorId& id, const std::string& behind, size_t before, const ReportStyle& style) {
  const Table::Cell cell = name_cell(session, id, behind);
  return style.full_names() ? cell.text : name_for(cell, style.columns() - std::min(before, style.columns()));
}

namespace {

std::optional<NodeId> gradient_of_parameter(const Session& session, const TensorId& id) {
  const Graph* graph = session.graph(id.rank, id.graph);
  if (graph == nullptr || id.slot.io != Io::kOutput || graph->node(id.node).kind != NodeKind::kOperator) return std::nullopt;
  return parameter_of_gradient(*graph, id.node, id.slot.index);
}

}  // namespace

std::string gradient_of_name(const Session& session, const TensorId& id) {
  const std::optional<NodeId> parameter = gradient_of_parameter(session, id);
  return parameter ? session.graph(id.rank, id.graph)->node(*parameter).name : "";
}

Table::Cell gradient_of_cell(const Session& session, const TensorId& id) {
  const std::optional<NodeId> parameter = gradient_of_parameter(session, id);
  if (!parameter) return "";
  TensorId value = id;
  value.node = *parameter;
  value.slot = {};
  return name_cell(session, value);
}

std::string brief_name(const Session& session, std::string_view full_name) {
  constexpr size_t kLongest = 48;
  const std::string name = short_name(session, full_name);
  return printable(display_width(name) <= kLongest ? name : elided_name(session, full_name));
}

std::string tensor_name(const Session& session, const TensorId& id, const ReportStyle& style) {
  const std::string& full = session.node(id).name;
  const std::string name = session.tensor_name(id);
  return style.full_names() ? printable(name) : brief_name(session, full) + name.substr(full.size());
}

std::string fitted(std::string text, const ReportStyle& style) {
  return style.columns() == ReportStyle::kAnyWidth ? text : wrapped(text, style.columns());
}

}  // namespace msdbg
