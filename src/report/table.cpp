#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace msdbg {
namespace {

constexpr size_t kLeastShrunk = 24;

size_t utf8_size(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

std::string_view tail(std::string_view text, size_t columns) {
  const size_t width = display_width(text);
  return columns >= width ? text : text.substr(head(text, width - columns).size());
}

}  // namespace

std::string_view head(std::string_view text, size_t columns) {
  size_t at = 0;
  for (; columns > 0 && at < text.size(); --columns) at += utf8_size(text[at]);
  return text.substr(0, std::min(at, text.size()));
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size(); at += utf8_size(text[at])) ++width;
  return width;
}

std::string shorten(std::string_view name, size_t width) {
  if (display_width(name) <= width || width < 8) return std::string(name);
  for (size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
    const std::string_view rest = name.substr(slash);
    if (display_width(rest) + 3 <= width) return "..." + std::string(rest);
  }
  const size_t slash = name.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? name : name.substr(slash);
  const std::string_view prefix = slash == std::string_view::npos ? "" : "...";
  const size_t room = width - prefix.size() - 3;
  return fmt::format("{}{}...{}", prefix, head(last, room - room / 2), tail(last, room / 2));
}

Paint paint_for(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return Paint::kError;
    case Severity::kWarning:
      return Paint::kWarning;
    case Severity::kInfo:
      return Paint::kNone;
  }
  return Paint::kNone;
}

std::string painted(std::string_view text, Paint paint, bool colour) {
  if (!colour || paint == Paint::kNone) return std::string(text);
  const char* code = paint == Paint::kError ? "31" : paint == Paint::kWarning ? "33" : "1";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string Table::text(const ReportStyle& style) const {
  std::vector<size_t> widths;
  size_t total = 2 * (columns_.size() - 1);
  for (size_t column = 0; column < columns_.size(); ++column) {
    size_t width = display_width(columns_[column].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[column].text));
    widths.push_back(width);
    // What stands in the last column may run over the edge: one long remark must not shorten every name.
    total += column + 1 == columns_.size() ? std::min(width, kLeastShrunk) : width;
  }
  for (size_t column = 0; column < columns_.size() && !style.wide; ++column) {
    if (!columns_[column].shrinks || total <= style.width) continue;
    const size_t least = std::min(widths[column], std::max(kLeastShrunk, display_width(columns_[column].title)));
    const size_t cut = std::min(total - style.width, widths[column] - least);
    widths[column] -= cut;
    total -= cut;
  }

  std::string out;
  auto line = [&](const std::vector<Cell>& cells) {
    std::string made;
    for (size_t column = 0; column < cells.size(); ++column) {
      const std::string text =
          columns_[column].shrinks && !style.wide ? shorten(cells[column].text, widths[column]) : cells[column].text;
      const size_t width = display_width(text);
      const std::string pad(widths[column] > width ? widths[column] - width : 0, ' ');
      const std::string shown = painted(text, cells[column].paint, style.colour);
      if (column > 0) made += "  ";
      made += columns_[column].align == Align::kRight ? pad + shown : shown + pad;
    }
    made.erase(made.find_last_not_of(' ') + 1);
    out += made + '\n';
  };
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.emplace_back(column.title);
  line(titles);
  for (const auto& row : rows_) line(row);
  return out;
}

std::string counted(uint64_t n, std::string_view word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); }

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:,=@%+";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string hint_text(const Session& session, const Hint& hint, Place place) {
  std::string out(hint.command);
  if (place != Place::kPrompt && !session.can_step()) {
    out = fmt::format("msdbg {} {}", hint.command, shell_word(printable(session.info().source)));
  }
  for (const std::string& word : hint.words) out += " " + shell_word(printable(word));
  return out;
}

const StackFrame* user_frame(const Node& node) {
  const auto outside = std::find_if(node.stack.begin(), node.stack.end(), [](const StackFrame& frame) {
    return frame.file.find("/mindspore/") == std::string::npos && frame.file.rfind("mindspore/", 0) != 0;
  });
  if (outside != node.stack.end()) return &*outside;
  return node.stack.empty() ? nullptr : &node.stack.front();
}

std::string source_place(const Node& node, bool full) {
  const StackFrame* found = user_frame(node);
  if (!found) return "";
  const StackFrame& frame = *found;
  const size_t slash = full ? std::string::npos : frame.file.rfind('/');
  const std::string file = slash == std::string::npos ? frame.file : frame.file.substr(slash + 1);
  return printable(frame.line > 0 ? fmt::format("{}:{}", file, frame.line) : file);
}

std::string lines_text(std::string_view text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    if (!out.empty()) out += "\n    ";
    out += printable(line);
  }
  return out;
}

std::string not_checked_text(const Session& session, const std::vector<NotChecked>& entries, const Coverage& coverage,
                             bool wide) {
  if (entries.empty()) return "";
  constexpr size_t kTensorsPerReason = 3;
  struct Listed {
    TensorId tensor;
    std::string rules;  ///< those that say the same of it
  };
  // In the order in which the reasons first appear, so that equal input gives equal text.
  std::vector<std::string> reasons;
  std::map<std::string, std::vector<Listed>> by_reason;
  for (const NotChecked& entry : entries) {
    std::vector<Listed>& list = by_reason[entry.reason];
    if (list.empty()) reasons.push_back(entry.reason);
    if (list.empty() || list.back().tensor != entry.tensor) list.push_back({entry.tensor, ""});
    const std::string rule = printable(entry.abbr.empty() ? entry.rule : entry.abbr);
    std::string& rules = list.back().rules;
    if (!rules.empty() && !rule.empty()) rules += ", ";
    rules += rule;
  }
  std::string out = fmt::format("not checked: {} of {}\n", coverage.not_checked, counted(coverage.tensors, "tensor"));
  for (const std::string& reason : reasons) {
    const std::vector<Listed>& list = by_reason[reason];
    const size_t shown = wide ? list.size() : std::min(list.size(), kTensorsPerReason);
    for (size_t i = 0; i < shown; ++i) {
      const Listed& place = list[i];
      out += fmt::format("  step {}  {}{}{}  {}\n", place.tensor.step, printable(session.tensor_name(place.tensor)),
                         place.tensor.execution > 0 ? fmt::format(" execution {}", place.tensor.execution) : "",
                         place.rules.empty() ? "" : "  " + place.rules, lines_text(reason));
    }
    if (shown < list.size())
      out += fmt::format("  ... {} more for the same reason (all: --wide)\n", list.size() - shown);
  }
  return out;
}

}  // namespace msdbg
