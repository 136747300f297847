#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace msdbg {

Table::Table(std::vector<Column> columns, bool numbered) : columns_(std::move(columns)), numbered_(numbered) {
  if (numbered_) columns_.insert(columns_.begin(), Column{"", Align::kRight});
}

void Table::add(const std::vector<Cell>& row) {
  constexpr size_t kBlock = size_t{1} << 20;
  MSDBG_CHECK(row.size() + (numbered_ ? 1 : 0) == columns_.size());
  if (blocks_.empty() || blocks_.back().size() > kBlock) begin_block();
  ++count_;
  if (numbered_) pack(Cell(std::to_string(count_)));
  for (const Cell& cell : row) pack(cell);
}

void Table::begin_block() {
  constexpr size_t kMostInMemory = 32;
  if (blocks_.size() >= kMostInMemory && !file_ && !in_memory_) {
    if (Result<File> made = File::temporary("rows of a table")) file_ = std::move(*made);
  }
  if (blocks_.size() >= kMostInMemory && !in_memory_) {
    in_memory_ = !file_ || !file_->append(std::as_bytes(std::span(blocks_.front()))).ok();
    if (!in_memory_) {
      sizes_.push_back(blocks_.front().size());
      blocks_.pop_front();
    }
  }
  blocks_.emplace_back();
}

// A cell is three lengths, its paint, its text and its elided form. Most lengths take a byte.
namespace {

void put_length(std::string& block, size_t length) {
  for (; length >= 0x80; length >>= 7) block += static_cast<char>(0x80 | (length & 0x7f));
  block += static_cast<char>(length);
}

size_t take_length(const char*& at) {
  size_t length = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    length |= static_cast<size_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return length;
  }
}

std::string_view take_text(const char*& at, size_t length) {
  const char* const begin = at;
  at += length;
  return {begin, length};
}

}  // namespace

void Table::pack(const CellView& cell) {
  std::string& block = blocks_.back();
  for (const size_t length : {cell.text.size(), cell.elided.size(), cell.least}) put_length(block, length);
  block += static_cast<char>(cell.paint);
  block.append(cell.text).append(cell.elided);
}

Status Table::each_row(const std::function<void(std::span<const CellView>)>& take) const {
  uint64_t at = 0;
  std::string block;
  for (const size_t size : sizes_) {
    block.resize(size);
    if (Status status = file_->read(at, std::as_writable_bytes(std::span(block))); !status.ok()) return status;
    at += size;
    unpack(block, take);
  }
  for (const std::string& kept : blocks_) unpack(kept, take);
  return {};
}

void Table::unpack(std::string_view block, const std::function<void(std::span<const CellView>)>& take) const {
  std::vector<CellView> row(columns_.size());
  for (const char* at = block.data(); at != block.data() + block.size();) {
    for (CellView& cell : row) {
      const size_t text = take_length(at), elided = take_length(at);
      cell.least = take_length(at);
      cell.paint = static_cast<Paint>(*at++);
      cell.text = take_text(at, text);
      cell.elided = take_text(at, elided);
    }
    take(row);
  }
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

std::string counted(uint64_t n, std::string_view word) { return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s"); }

std::string ranks_numbers(std::span<const int> ranks) {
  const std::vector<int64_t> numbers(ranks.begin(), ranks.end());
  return numbers_text(numbers);
}

std::string ranks_cell(std::span<const int> ranks) {
  constexpr size_t kMostWidth = 32;
  std::string text = ranks_numbers(ranks);
  if (text.size() <= kMostWidth) return text;
  size_t named = ranks.size();
  while (named > 1 && text.size() > kMostWidth) {
    named -= (named + 7) / 8;
    text = fmt::format("{} and {} more", ranks_numbers(ranks.first(named)), ranks.size() - named);
  }
  return text;
}

std::vector<JoinedRow> join_ranks(std::span<const RankRow> rows) {
  std::map<std::string_view, size_t> known;
  std::vector<std::vector<JoinedRow>> things;
  const auto read_the_same = [&](size_t a, size_t b) {
    return std::equal(rows[a].cells.begin(), rows[a].cells.end(), rows[b].cells.begin(), rows[b].cells.end(),
                      [](const Table::Cell& x, const Table::Cell& y) { return x.text == y.text; });
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto [found, is_new] = known.try_emplace(rows[i].about, things.size());
    if (is_new) things.emplace_back();
    std::vector<JoinedRow>& joined = things[found->second];
    const auto same = std::find_if(joined.begin(), joined.end(), [&](const JoinedRow& row) { return read_the_same(row.first, i); });
    if (same == joined.end()) joined.push_back({{rows[i].rank}, i});
    else same->ranks.push_back(rows[i].rank);
  }
  std::vector<JoinedRow> out;
  for (std::vector<JoinedRow>& joined : things) {
    for (JoinedRow& row : joined) out.push_back(std::move(row));
  }
  return out;
}

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

std::string lines_text(std::string_view text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    if (!out.empty()) out += "\n    ";
    out += printable(line);
  }
  return out;
}

namespace {

/// A tensor that was not checked.
struct Listed {
  TensorId tensor;
  std::string rules;  ///< that report the same reason for it
  std::vector<int> ranks;
};

/// One entry for the same tensor of several ranks.
void join_ranks(const Session& session, std::vector<Listed>& list) {
  std::map<std::tuple<int64_t, int, std::string_view, Slot, uint32_t, std::string>, size_t> places;
  std::vector<Listed> joined;
  for (Listed& each : list) {
    const TensorId& id = each.tensor;
    const auto [at, fresh] =
        places.try_emplace({id.step, id.graph, session.node(id).name, id.slot, id.execution, each.rules}, joined.size());
    if (fresh) joined.push_back(std::move(each));
    else joined[at->second].ranks.push_back(id.rank);
  }
  for (Listed& each : joined) {
    std::ranges::sort(each.ranks);
    each.ranks.erase(std::unique(each.ranks.begin(), each.ranks.end()), each.ranks.end());
  }
  list = std::move(joined);
}

}  // namespace

std::string not_checked_text(const Session& session, const std::vector<NotChecked>& entries, const Coverage& coverage,
                             const ReportStyle& style) {
  if (entries.empty()) return "";
  constexpr size_t kTensorsPerReason = 3;
  // In order of first appearance: equal input gives equal text.
  std::vector<std::string> reasons;
  std::map<std::string, std::vector<Listed>> by_reason;
  for (const NotChecked& entry : entries) {
    std::vector<Listed>& list = by_reason[entry.reason];
    if (list.empty()) reasons.push_back(entry.reason);
    if (list.empty() || list.back().tensor != entry.tensor) list.push_back({entry.tensor, "", {entry.tensor.rank}});
    const std::string rule = printable(entry.abbr.empty() ? entry.rule : entry.abbr);
    std::string& rules = list.back().rules;
    if (!rules.empty() && !rule.empty()) rules += ", ";
    rules += rule;
  }
  const bool several = session.ranks().size() > 1;
  std::string out = fmt::format("not checked: {} of {}\n", coverage.not_checked, counted(coverage.tensors, "tensor"));
  for (const std::string& reason : reasons) {
    std::vector<Listed>& list = by_reason[reason];
    if (several) join_ranks(session, list);
    const size_t shown = style.wide ? list.size() : std::min(list.size(), kTensorsPerReason);
    for (size_t i = 0; i < shown; ++i) {
      const Listed& place = list[i];
      const std::string ranks =
          several ? fmt::format("  {} {}", place.ranks.size() == 1 ? "rank" : "ranks", ranks_numbers(place.ranks)) : "";
      out += fmt::format("  step {}{}  {}{}{}  {}\n", place.tensor.step, ranks, tensor_name(session, place.tensor, style),
                         place.tensor.execution > 0 ? fmt::format(" execution {}", place.tensor.execution) : "",
                         place.rules.empty() ? "" : "  " + place.rules, lines_text(reason));
    }
    if (shown < list.size())
      out +=
          fmt::format("  ... {} more for the same reason{}\n", list.size() - shown, style.place == Place::kScript ? "" : " (all: --wide)");
  }
  return out;
}

}  // namespace msdbg
