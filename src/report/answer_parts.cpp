#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "msdbg/answers.h"
#include "report/follow_text.h"
#include "report/markup.h"

namespace msdbg {
namespace {

/// JSON has no NaN and no infinities.
Answer speakable(const Answer& value) {
  if (value.is_structured()) {
    Answer out = value.is_object() ? Answer::object() : Answer::array();
    for (auto it = value.begin(); it != value.end(); ++it) {
      if (value.is_object()) out[it.key()] = speakable(*it);
      else out.push_back(speakable(*it));
    }
    return out;
  }
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return value;
}

bool is_speakable(const Answer& value) {
  if (value.is_structured()) return std::all_of(value.begin(), value.end(), is_speakable);
  return !value.is_number_float() || std::isfinite(value.get<double>());
}

std::string dumped(const Answer& value, int indent) {
  if (!is_speakable(value)) return dumped(speakable(value), indent);
  return value.dump(indent, ' ', false, Answer::error_handler_t::replace) + "\n";
}

std::string csv_text_of(const Answer& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return printable(value.get<std::string>());
  if (value.is_number_float()) return format_double(value.get<double>());
  if (!value.is_array()) return value.dump();
  std::vector<std::string> parts;
  for (const Answer& element : value) parts.push_back(csv_text_of(element));
  return fmt::format("[{}]", fmt::join(parts, ","));
}

Answer value_at(const Answer& row, std::string_view path) {
  const size_t dot = path.find('.');
  if (!row.is_object()) return nullptr;
  const auto found = row.find(std::string(path.substr(0, dot)));
  if (found == row.end()) return nullptr;
  return dot == std::string_view::npos ? *found : value_at(*found, path.substr(dot + 1));
}

}  // namespace

std::string csv_text(std::span<const CsvColumn> columns, const Answer& rows) {
  std::vector<std::string> fields;
  for (const CsvColumn& column : columns) fields.emplace_back(column.title);
  std::string out = csv_line(fields);
  for (const Answer& row : rows) {
    for (size_t i = 0; i < columns.size(); ++i) fields[i] = csv_text_of(value_at(row, columns[i].path));
    out += csv_line(fields);
  }
  return out;
}

std::string markdown_table(std::span<const CsvColumn> columns, const Answer& rows) {
  std::vector<std::string> fields;
  for (const CsvColumn& column : columns) fields.emplace_back(column.title);
  std::string out = follow::markdown_head(fields);
  for (const Answer& row : rows) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const Answer value = value_at(row, columns[i].path);
      fields[i] = value.is_number_float() ? format_short(value.get<double>()) : csv_text_of(value);
    }
    out += follow::markdown_line(fields);
  }
  return out;
}

std::string json_text(const Answer& answer) { return dumped(answer, 2); }
std::string json_line(const Answer& answer) { return dumped(answer, -1); }

std::string json_lines(const Answer& answer, std::string_view entries) {
  std::string out;
  Answer summary;
  for (auto it = answer.begin(); it != answer.end(); ++it) {
    if (it.key() != entries) {
      summary[it.key()] = *it;
      continue;
    }
    for (const Answer& entry : *it) out += dumped(entry, -1);
  }
  return out + dumped(Answer{{"summary", std::move(summary)}}, -1);
}

RowWriter::RowWriter(Format format, Answer head, std::string key, std::span<const CsvColumn> columns)
    : format_(format), head_(std::move(head)), key_(std::move(key)), columns_(columns) {}

std::string RowWriter::start() {
  started_ = true;
  if (format_ == Format::kCsv || format_ == Format::kMarkdown) {
    const Answer none = Answer::array();
    std::string titles = format_ == Format::kCsv ? csv_text(columns_, none) : markdown_table(columns_, none);
    titles_ = titles.size();
    return titles;
  }
  if (format_ != Format::kJson) return "";
  Answer empty = head_;
  empty[key_] = Answer::array();
  const std::string text = json_text(empty);
  return text.substr(0, text.rfind("]"));
}

std::string RowWriter::add(const Answer& row) {
  const std::string separator = started_ ? "," : "";
  std::string out = started_ ? "" : start();
  if (format_ == Format::kJsonl) return json_line(row);
  const Answer rows = Answer::array({row});
  if (format_ == Format::kJson) {
    const std::string text = json_text({{key_, rows}});
    const size_t begin = text.find('\n', 2), end = text.rfind("\n  ]");
    return out + separator + text.substr(begin, end - begin);
  }
  return out + (format_ == Format::kCsv ? csv_text(columns_, rows) : markdown_table(columns_, rows)).substr(titles_);
}

std::string RowWriter::finish(const Answer& rest) {
  const bool any = started_;
  std::string out = started_ ? "" : start();
  if (format_ == Format::kCsv || format_ == Format::kMarkdown) return out;
  Answer all = head_;
  for (auto it = rest.begin(); it != rest.end(); ++it) all[it.key()] = *it;
  if (format_ == Format::kJsonl) return json_line({{"summary", std::move(all)}});
  Answer after = {{key_, Answer::array()}};
  for (auto it = rest.begin(); it != rest.end(); ++it) after[it.key()] = *it;
  const std::string text = json_text(after);
  return out + (any ? "\n  " : "") + text.substr(text.find(']'));
}

Answer number_answer(const std::optional<double>& value) {
  if (!value) return nullptr;
  if (*value == std::floor(*value) && std::abs(*value) < 9e15) return static_cast<int64_t>(*value);
  return *value;
}

Answer text_answer(std::string_view text) { return text.empty() ? Answer() : Answer(text); }

Answer stats_answer(Session& session, const std::optional<Stats>& stats, const std::optional<TensorId>& id) {
  if (!stats) return nullptr;
  Shape shape;
  if (id) {
    if (const Result<TensorInfo> info = session.describe(*id)) shape = info->shape;
  }
  return stats_answer(*stats, shape);
}

Answer stats_answer(const Stats& s, std::span<const int64_t> shape) {
  // Without a finite element there is no minimum: null, not NaN.
  auto real = [&](double value, uint32_t field) -> Answer { return !s.knows(field) || std::isnan(value) ? Answer() : Answer(value); };
  auto count = [&](uint64_t value, uint32_t field) -> Answer { return s.knows(field) ? Answer(value) : Answer(); };
  Answer out;
  out["count"] = count(s.count, kStatCount);
  out["min"] = real(s.min, kStatMin);
  out["max"] = real(s.max, kStatMax);
  out["mean"] = real(s.mean, kStatMean);
  out["abs_mean"] = real(s.abs_mean, kStatAbsMean);
  out["std"] = real(s.std, kStatStd);
  // Without finite elements the sum is 0, which would look like a tensor of zeros.
  const bool finite = s.count == 0 || s.finite_count() > 0;
  out["l2_norm"] = finite ? real(s.l2_norm, kStatL2Norm) : Answer();
  out["nan_count"] = count(s.nan_count, kStatNan);
  out["pos_inf_count"] = count(s.pos_inf_count, kStatPosInf);
  out["neg_inf_count"] = count(s.neg_inf_count, kStatNegInf);
  out["zero_count"] = count(s.zero_count, kStatZero);
  out["pos_count"] = count(s.pos_count, kStatPos);
  out["neg_count"] = count(s.neg_count, kStatNeg);
  out["zero_percentage"] = s.knows(kStatZero) ? real(s.zero_percentage(), kStatCount) : Answer();
  const bool placed = s.knows(kStatFirstBad) && s.first_bad && element_count(shape).value_or(0) > *s.first_bad;
  out["first_bad"] = placed ? Answer(coordinates(*s.first_bad, shape)) : Answer();
  out["dtype_max_count"] = count(s.dtype_max_count, kStatDtypeMax);
  return out;
}

Answer stack_answer(const Node& node) {
  Answer out = Answer::array();
  for (const StackFrame& frame : node.stack)
    out.push_back({{"file", frame.file}, {"line", frame.line > 0 ? Answer(frame.line) : Answer()}, {"code", frame.code}});
  return out;
}

Answer source_answer(const Node& node) {
  const StackFrame* frame = user_frame(node);
  if (frame == nullptr) return nullptr;
  return {{"file", frame->file}, {"line", frame->line > 0 ? Answer(frame->line) : Answer()}};
}

Answer place_answer(const Session& session, const TensorId& id) {
  const Graph* graph = session.graph(id.rank, id.graph);
  const Node& node = session.node(id);
  Answer out;
  out["rank"] = id.rank;
  out["graph"] = graph ? graph->name() : "";
  out["graph_id"] = id.graph;
  out["step"] = id.step;
  out["execution"] = id.execution;
  out["node"] = node.name;
  out["op"] = node.op;
  out["slot"] = slot_name(id.slot);
  return out;
}

Answer coverage_answer(const Coverage& coverage) {
  return {{"tensors", coverage.tensors},
          {"checked", coverage.checked},
          {"not_checked", coverage.not_checked},
          {"bytes", coverage.bytes},
          {"from_cache", coverage.from_cache}};
}

Answer not_checked_answer(const Session& session, const NotChecked& entry) {
  Answer out;
  out["watch"] = entry.watch_id != 0 ? Answer(entry.watch_id) : Answer();
  out["rule"] = entry.rule;
  out["abbr"] = entry.abbr;
  out.update(place_answer(session, entry.tensor));
  out["reason"] = entry.reason;
  out["error_code"] = entry.error_code;
  out["errors"] = error_texts(entry.error_code);
  return out;
}

}  // namespace msdbg
