#include "session/dump/file_name.h"

#include <algorithm>
#include <vector>

namespace msdbg::dump {
namespace {

bool is_io(std::string_view text) { return text == "input" || text == "output"; }

std::optional<uint64_t> parse_timestamp(std::string_view text) {
  if (text.empty()) return 0;  // made by hand
  const std::optional<int64_t> value = parse_digits(text);
  if (!value) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

/// Takes the last component off `text`, which lost none before if it has no dot; false then.
bool take_last(std::string_view& text, std::string_view& part) {
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return false;
  part = text.substr(dot + 1);
  text = text.substr(0, dot);
  return true;
}

/// `{type}.{op}.{task}.{stream}.{ts}` or, without a name, `{type}.{task}.{stream}.{ts}`: an operator's name may contain dots.
bool parse_head(std::string_view text, FileName& name) {
  std::string_view timestamp_text, stream_text, task_text;
  if (!take_last(text, timestamp_text) || !take_last(text, stream_text) || !take_last(text, task_text)) return false;
  const std::optional<uint64_t> timestamp = parse_timestamp(timestamp_text);
  const std::optional<int64_t> stream = parse_digits(stream_text);
  const std::optional<int64_t> task = parse_digits(task_text);
  if (!timestamp || !stream || !task) return false;
  name.timestamp = *timestamp;
  name.stream = *stream;
  name.task = *task;
  const size_t dot = text.find('.');
  name.op_type = text.substr(0, dot);
  if (dot != std::string_view::npos) name.op = text.substr(dot + 1);
  return true;
}

/// `2x3x4`: the shape that the converter of containers writes in the place of a format.
bool is_shape(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && digit(text.front()) && digit(text.back()) &&
      std::all_of(text.begin(), text.end(), [&](char c) { return digit(c) || c == 'x'; });
}

/// `{type}.{op}.{task}.{ts}`: containers before 1.3, and what the converter made of them.
bool parse_head_without_stream(std::string_view text, FileName& name) {
  const std::vector<std::string_view> parts = split(text, '.');
  if (parts.size() != 4 || parts[1].empty()) return false;
  const std::optional<int64_t> task = parse_digits(parts[2]), timestamp = parse_digits(parts[3]);
  if (!task || !timestamp) return false;
  name.op_type = parts[0];
  name.op = parts[1];
  name.task = *task;
  name.timestamp = static_cast<uint64_t>(*timestamp);
  return true;
}

/// `{head}.{io}.{slot}.{format}`, and since 2.0 `.{dtype}`.
bool parse_npy(std::string_view text, FileName& name) {
  std::string_view last, format, slot_text, io;
  if (!take_last(text, last) || !take_last(text, slot_text) || !take_last(text, io)) return false;
  format = last;
  if (!is_io(io)) {
    name.dtype = last;
    format = slot_text;
    slot_text = io;
    if (!take_last(text, io) || !is_io(io)) return false;
  }
  const std::optional<int64_t> slot = parse_digits(slot_text);
  if (!slot || *slot > kMaxSlot) return false;
  name.io = io == "input" ? Io::kInput : Io::kOutput;
  name.slot = static_cast<uint32_t>(*slot);
  const bool converted = is_shape(format) || format.empty();
  name.format = converted ? "ND" : format;
  if (!parse_head(text, name) && !(converted && parse_head_without_stream(text, name))) return false;
  name.kind = FileKind::kNpy;
  return true;
}

/// `{node}_{io}_{slot}_shape_{d0_d1}_{dtype}_{format}`; a format may contain underscores, a type cannot.
bool parse_raw(std::string_view text, FileName& name) {
  const size_t mark = text.rfind("_shape_");
  if (mark == std::string_view::npos) return false;
  const std::string_view head = text.substr(0, mark);
  const size_t slot_at = head.rfind('_');
  if (slot_at == std::string_view::npos || slot_at == 0) return false;
  const size_t io_at = head.rfind('_', slot_at - 1);
  if (io_at == std::string_view::npos || io_at == 0) return false;
  const std::string_view io = head.substr(io_at + 1, slot_at - io_at - 1);
  const std::optional<int64_t> slot = parse_digits(head.substr(slot_at + 1));
  if (!is_io(io) || !slot || *slot > kMaxSlot) return false;

  std::string_view tail = text.substr(mark + 7);
  Shape shape;
  for (;;) {
    const size_t end = tail.find('_');
    if (end == std::string_view::npos) return false;
    const std::string_view part = tail.substr(0, end);
    tail.remove_prefix(end + 1);
    if (const std::optional<int64_t> length = parse_digits(part)) {
      shape.push_back(*length);
    } else {
      name.dtype = part;
      break;
    }
  }
  if (shape.size() == 1 && shape[0] == 0) {
    name.scalar = true;
    shape.clear();
  }
  name.kind = FileKind::kRaw;
  name.io = io == "input" ? Io::kInput : Io::kOutput;
  name.slot = static_cast<uint32_t>(*slot);
  name.op = head.substr(0, io_at);
  name.format = tail;
  name.shape = std::move(shape);
  return true;
}

/// `{type}.{op}.{task}.{stream}.{ts}` or, before 1.3, without the stream.
bool parse_device(std::string_view text, FileName& name) {
  if (std::count(text.begin(), text.end(), '.') >= 4 && !text.ends_with('.') && parse_head(text, name)) {
    name.kind = FileKind::kDevice;
    return true;
  }
  if (!parse_head_without_stream(text, name)) return false;
  name.kind = FileKind::kDevice;
  return true;
}

}  // namespace

std::optional<int64_t> parse_digits(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : parse_int(text);
}

FileName parse_file_name(std::string_view text) {
  FileName name;
  if (text == "mapping.csv") {
    name.kind = FileKind::kMapping;
  } else if (text == "statistic.csv") {
    name.kind = FileKind::kStatistics;
  } else if (text.starts_with("Opdebug.")) {
    name.kind = FileKind::kOverflow;
  } else if (text.ends_with(".npy")) {
    if (!parse_npy(text.substr(0, text.size() - 4), name)) name = FileName();
  } else if (text.ends_with(".bin")) {
    if (!parse_raw(text.substr(0, text.size() - 4), name)) name = FileName();
  } else if (!parse_device(text, name)) {
    name = FileName();
  }
  return name;
}

bool is_host_format(std::string_view format) {
  if (format.starts_with("FRACTAL_")) return false;
  // Blocked formats have the block in their name: NC1HWC0, NC1HWC0_C04, C1HWNCoC0, NDC1HWC0, NC1C0HWPAD, ...
  return format.find("C0") == std::string_view::npos && format.find("C1") == std::string_view::npos &&
         format.find("NC1K") == std::string_view::npos;
}

NumberedName split_number(std::string_view op) {
  constexpr std::string_view kMark = "-op";
  size_t digits = op.size();
  while (digits > 0 && op[digits - 1] >= '0' && op[digits - 1] <= '9') --digits;
  const std::string_view before = op.substr(0, digits);
  if (digits == op.size() || !before.ends_with(kMark)) return {op, std::nullopt};
  const std::optional<int64_t> number = parse_digits(op.substr(digits));
  if (!number) return {op, std::nullopt};
  return {before.substr(0, digits - kMark.size()), number};
}

}  // namespace msdbg::dump
