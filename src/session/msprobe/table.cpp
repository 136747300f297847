#include "session/msprobe/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "session/msprobe/exchange_calls.h"
#include "session/msprobe/json_members.h"
#include "session/msprobe/names.h"

namespace msdbg::msprobe {
namespace {

/// Attributes are for people; a dictionary of a thousand options is not.
constexpr size_t kMaxAttributes = 64;
constexpr size_t kMaxAttributeText = 200;
constexpr size_t kMaxDimensions = 64;

bool is_tensor(const JsonValue& value) {
  const std::optional<JsonValue> type = value.find("type");
  return type && type->is(JsonKind::kText) && (type->text().ends_with("Tensor") || type->text() == "numpy.ndarray") &&
         value.find("dtype") && value.find("shape");
}

std::string joined(const std::string& path, std::string_view part) {
  return path.empty() ? std::string(part) : path + "." + std::string(part);
}

/// `torch.float32`, `Float32`, `float32` (numpy).
DType dtype_of(std::string_view text) {
  const size_t dot = text.rfind('.');
  const std::string_view name = dot == std::string_view::npos ? text : text.substr(dot + 1);
  if (name.starts_with("float8") || name.starts_with("Float8")) return DType::kFloat8;
  return dtype_from_name(name);
}

class TensorReader {
 public:
  explicit TensorReader(const JsonValue& value) : value_(value) {}

  Record read(std::string path) {
    record_.path = std::move(path);
    for (const JsonValue field : value_.children()) take(field);
    return std::move(record_);
  }

 private:
  void take(const JsonValue& field) {
    const std::string_view key = field.key();
    if (key == "dtype") take_dtype(field);
    else if (key == "shape") take_shape(field);
    else if (key == "Max") statistic(field, kGivenMax, record_.max);
    else if (key == "Min") statistic(field, kGivenMin, record_.min);
    else if (key == "Mean") statistic(field, kGivenMean, record_.mean);
    else if (key == "Norm") statistic(field, kGivenNorm, record_.norm);
    else if (key == "Max_except_inf_nan") statistic(field, kGivenFiniteMax, record_.finite_max);
    else if (key == "Min_except_inf_nan") statistic(field, kGivenFiniteMin, record_.finite_min);
    else if (key == "md5") take_checksum(field);
    else if (key == "requires_grad") record_.requires_grad = field.truth();
    else if (key == "data_name" && field.is(JsonKind::kText)) record_.file = field.text();
  }

  void take_dtype(const JsonValue& field) {
    record_.dtype = dtype_of(field.text());
    if (!is_evaluable(record_.dtype)) record_.dtype_text = field.text();
  }

  void take_shape(const JsonValue& field) {
    bool good = field.is(JsonKind::kList);
    if (good) {
      for (const JsonValue size : field.children()) {
        const std::optional<int64_t> number = size.integer();
        good = good && number && record_.shape.size() < kMaxDimensions;
        if (good) record_.shape.push_back(*number);
      }
    }
    const std::optional<uint64_t> count = good ? element_count(record_.shape) : std::nullopt;
    if (count) {
      record_.count = *count;
    } else {
      record_.problem = "the table gives it an impossible shape";
      record_.shape.clear();
    }
  }

  /// Minimum and maximum of booleans are booleans; `null` and everything else is no statistic.
  void statistic(const JsonValue& field, Given which, double& out) {
    if (!field.is(JsonKind::kNumber) && !field.is(JsonKind::kBool)) return;
    out = field.number();
    record_.given |= which;
  }

  void take_checksum(const JsonValue& field) {
    std::string_view text = field.text();
    const bool marked = text.starts_with("0x");
    if (marked) text.remove_prefix(2);
    constexpr size_t kCrcDigits = 8, kXorDigits = 16;
    if (text.size() != kCrcDigits && text.size() != kXorDigits) return;
    uint64_t sum = 0;
    for (const char c : text) {
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (digit < 0) return;
      sum = sum << 4 | static_cast<uint64_t>(digit);
    }
    record_.checksum = sum;
    record_.checksum_bits = text.size() == kCrcDigits ? 32 : 64;
  }

  const JsonValue& value_;
  Record record_;
};

class CallReader {
 public:
  explicit CallReader(CallRecord& call) : call_(call), name_(parse_entry_name(call.name)) {}

  void read(const JsonValue& entry) {
    // `debugger.save` keeps a value as it is.
    if (entry.is(JsonKind::kList) || is_tensor(entry)) {
      collect(entry, "output", call_.outputs);
      return;
    }
    for (const JsonValue side : entry.children()) {
      const std::string_view key = side.key();
      call_.has_inputs = call_.has_inputs || key.starts_with("input");
      if (name_.kind == EntryKind::kParameterGradients) collect(side, std::string(key), call_.outputs);
      else if (key == "input_args" || key == "input") collect(side, std::string(key), call_.inputs);
      else if (key == "input_kwargs") collect_named(side);
      else if (key == "output") collect(side, "output", call_.outputs);
      else if (key == "parameters") collect_parameters(side);
      else if (key == "is_recompute") call_.unusual = side.truth();
      else if (key == "is_nan") call_.flagged = side.truth() || side.number() != 0;
      else if (side.is(JsonKind::kObject) || side.is(JsonKind::kList)) collect(side, std::string(key), call_.outputs);
    }
    // They come in the order in which the backward pass made them, which may be another one in the next step.
    if (name_.kind == EntryKind::kParameterGradients) std::ranges::stable_sort(call_.outputs, {}, &Record::path);
  }

 private:
  /// Positions keep their path; arguments with a name are called by it.
  void collect_named(const JsonValue& side) {
    for (const JsonValue value : side.children()) {
      attribute_prefix_ = value.key();
      collect(value, joined("input_kwargs", value.key()), call_.inputs);
      attribute_prefix_.clear();
    }
  }

  void collect_parameters(const JsonValue& side) {
    for (const JsonValue value : side.children()) {
      if (is_tensor(value)) call_.parameters.push_back(TensorReader(value).read(std::string(value.key())));
    }
  }

  void collect(const JsonValue& value, const std::string& path, std::vector<Record>& into) {
    if (is_tensor(value)) {
      const bool no_value = &into == &call_.inputs ? is_only_written(name_, path) : is_only_read(name_, path, call_.outputs);
      if (!no_value) into.push_back(TensorReader(value).read(path));
      return;
    }
    if (value.is(JsonKind::kObject) && value.find("type")) {
      describe(value, path);
      return;
    }
    if (value.is(JsonKind::kList) && std::string(scalars(value)).size() > 2) {
      add_attribute(path, scalars(value));
      return;
    }
    if (!value.is(JsonKind::kList) && !value.is(JsonKind::kObject)) {
      // The recorder leaves out the results of the call that are no tensors.
      if (&into == &call_.inputs) add_attribute(path, value.printed());
      return;
    }
    size_t place = 0;
    for (const JsonValue child : value.children())
      collect(child, joined(path, value.is(JsonKind::kObject) ? std::string(child.key()) : std::to_string(place++)), into);
  }

  /// "[1, 2]" for a list of numbers and texts only, else "".
  static std::string scalars(const JsonValue& list) {
    std::string out = "[";
    for (const JsonValue item : list.children()) {
      const std::optional<JsonValue> value = item.find("value");
      if (!value || is_tensor(item)) return "";
      const std::string text = value->printed();
      if (text.empty() || out.size() + text.size() > kMaxAttributeText) return "";
      out += (out.size() > 1 ? ", " : "") + text;
    }
    return out + "]";
  }

  void describe(const JsonValue& value, const std::string& path) {
    const std::string type(value.find("type")->text());
    if (type == "torch.ProcessGroup") {
      if (const auto id = value.find("group_id")) add_attribute("group", id->printed(), false);
      if (const auto ranks = value.find("group_ranks")) add_attribute("group_ranks", list_text(*ranks), false);
      return;
    }
    const std::optional<JsonValue> content = value.find("value") ? value.find("value") : value.find("format");
    if (content) add_attribute(path, content->is(JsonKind::kList) ? list_text(*content) : content->printed());
  }

  static std::string list_text(const JsonValue& list) {
    std::string out = "[";
    for (const JsonValue item : list.children()) {
      if (out.size() > kMaxAttributeText) return out + ", ...]";
      out += (out.size() > 1 ? ", " : "") + item.printed();
    }
    return out + "]";
  }

  void add_attribute(const std::string& path, std::string value, bool prefixed = true) {
    if (value.empty() || call_.attributes.size() >= kMaxAttributes || path.starts_with("output")) return;
    if (value.size() > kMaxAttributeText) value = value.substr(0, kMaxAttributeText) + "...";
    constexpr std::string_view kNamed = "input_kwargs.";
    const bool named = prefixed && !attribute_prefix_.empty() && path.starts_with(kNamed);
    call_.attributes.push_back({SharedText(named ? path.substr(kNamed.size()) : path), SharedText(std::move(value))});
  }

  CallRecord& call_;
  const EntryName name_;  // parts of the name in `call_`
  std::string attribute_prefix_;
};

}  // namespace

Record read_record(const JsonValue& tensor, std::string path) { return TensorReader(tensor).read(std::move(path)); }

Table read_table(std::string text) {
  Table table;
  std::set<std::string, std::less<>> names;
  uint64_t repeated = 0;
  const Status status = read_members(std::move(text), "data", [&](std::string_view inside, JsonValue value) -> std::string {
    if (inside.empty()) {
      if (value.key() == "task") table.task = value.text();
      else if (value.key() == "level") table.level = value.text();
      else if (value.key() == "framework") table.framework = value.text();
      else if (value.key() == "data") return "its 'data' is not a table of calls: this is no dump.json of msprobe";
      return "";
    }
    table.has_table = true;
    if (!names.insert(std::string(value.key())).second) {
      ++repeated;
      return "";
    }
    std::vector<CallRecord> batch = read_batch(parse_entry_name(value.key()), value);
    for (CallRecord& each : batch) {
      each.name = value.key();
      table.calls.push_back(std::move(each));
    }
    if (!batch.empty()) return "";
    CallRecord call;
    call.name = value.key();
    CallReader(call).read(value);
    table.marks_recomputed = table.marks_recomputed || value.find("is_recompute").has_value();
    table.calls.push_back(std::move(call));
    return "";
  });
  table.problem = status.message();
  if (repeated > 0) table.notes.push_back(fmt::format("{} entries repeat the name of an earlier one and are not used", repeated));
  return table;
}

}  // namespace msdbg::msprobe
