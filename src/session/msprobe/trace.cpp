#include "session/msprobe/trace.h"

#include <limits>

#include "msdbg/base.h"
#include "session/msprobe/json_members.h"

namespace msdbg::msprobe {
namespace {

/// Python's own limit of recursion is 1000 frames.
constexpr size_t kMaxFrames = 1000;

SharedList<StackFrame> frames_of(const JsonValue& list) {
  std::vector<StackFrame> frames;
  for (const JsonValue text : list.children()) {
    if (!text.is(JsonKind::kText) || frames.size() >= kMaxFrames) continue;
    StackFrame frame = parse_frame(text.text());
    if (frame.file->find("-packages/msprobe/") == std::string::npos) frames.push_back(std::move(frame));
  }
  return SharedList<StackFrame>(std::move(frames));
}

/// [[ENTRY, ...], [FRAME, ...]]
void take_group(const JsonValue& group, Stacks& out) {
  std::vector<JsonValue> parts;
  for (const JsonValue part : group.children()) parts.push_back(part);
  if (parts.size() != 2 || !parts[0].is(JsonKind::kList) || !parts[1].is(JsonKind::kList)) return;
  const SharedList<StackFrame> frames = frames_of(parts[1]);
  for (const JsonValue entry : parts[0].children()) {
    if (entry.is(JsonKind::kText)) out.of.insert_or_assign(std::string(entry.text()), frames);
  }
}

}  // namespace

StackFrame parse_frame(std::string_view text) {
  StackFrame frame;
  const size_t end = text.find('\n');
  std::string_view place = trim(text.substr(0, end));
  if (end != std::string_view::npos) frame.code = trim(text.substr(end + 1));
  if (place.ends_with(',')) place.remove_suffix(1);
  if (place.starts_with("File ")) place.remove_prefix(5);
  if (const size_t function = place.rfind(", in "); function != std::string_view::npos) place = place.substr(0, function);
  constexpr std::string_view kLine = ", line ";
  if (const size_t at = place.rfind(kLine); at != std::string_view::npos) {
    const std::optional<int64_t> line = parse_int(place.substr(at + kLine.size()));
    if (line && *line > 0 && *line <= std::numeric_limits<int>::max()) {
      frame.line = static_cast<int>(*line);
      place = place.substr(0, at);
    }
  }
  frame.file = place;
  return frame;
}

Stacks read_stacks(std::string text) {
  Stacks out;
  const Status status = read_members(std::move(text), "", [&](std::string_view, JsonValue member) -> std::string {
    if (!member.is(JsonKind::kList)) return "";
    const bool grouped = member.key().find_first_not_of("0123456789") == std::string_view::npos;
    if (grouped) {
      take_group(member, out);
    } else {
      out.by_entry = true;
      out.of.insert_or_assign(std::string(member.key()), frames_of(member));
    }
    return "";
  });
  out.problem = status.message();
  return out;
}

Callers read_callers(std::string text) {
  Callers out;
  const Status status = read_members(std::move(text), "", [&](std::string_view, JsonValue member) -> std::string {
    if (member.is(JsonKind::kNumber)) return "";  // megatron_micro_step_number
    std::string caller;
    if (member.is(JsonKind::kText)) caller = member.text();
    if (member.is(JsonKind::kList)) {  // Megatron: [parent, micro step]
      for (const JsonValue part : member.children()) {
        if (part.is(JsonKind::kText)) caller = part.text();
        break;
      }
    }
    const auto [at, fresh] = out.of.insert_or_assign(std::string(member.key()), std::move(caller));
    if (fresh) out.order.push_back(at->first);
    return "";
  });
  out.problem = status.message();
  return out;
}

}  // namespace msdbg::msprobe
