#include "script/rule_findings.h"

#include <fmt/format.h>

#include "script/rule_run.h"

namespace msdbg::script {
namespace {

std::optional<int64_t> integer_field(lua_State* L, int index, const char* key) {
  push_raw(L, index, key);
  const auto number = integer_at(L, -1);
  lua_pop(L, 1);
  return number;
}

// Fields that locate a finding; all others describe it.
constexpr std::string_view kWhere[] = {"tensor", "node", "step", "rank", "slot"};

Result<TensorId> place_of(lua_State* L, int index, SessionBox& box, std::optional<int> rank, std::optional<int64_t> step) {
  push_raw(L, index, "tensor");
  const auto* holder = holder_at<TensorBox>(L, -1);
  const std::shared_ptr<TensorBox> tensor = holder != nullptr ? *holder : nullptr;
  lua_pop(L, 1);
  if (tensor && tensor->session.get() != &box) return Status(Code::kInvalidArgument, "a finding names a tensor of another session");
  if (tensor) return tensor->info.id;
  const std::string node = text_field(L, index, "node");
  if (node.empty()) return Status(Code::kInvalidArgument, "a finding has neither 'tensor' nor 'node'");
  if (const auto given = integer_field(L, index, "rank")) rank = static_cast<int>(*given);
  if (const auto given = integer_field(L, index, "step")) step = *given;
  if (!step) return Status(Code::kInvalidArgument, fmt::format("the finding on '{}' has no 'step'", node));
  const Result<NodeRef> ref = find_node(box.session->graphs(), node, rank, {});
  if (!ref) return ref.status();
  const std::string slot_text = text_field(L, index, "slot");
  const auto slot = parse_slot(slot_text.empty() ? "output:0" : slot_text);
  if (!slot)
    return Status(Code::kInvalidArgument, fmt::format("the finding on '{}' has the slot '{}'; e.g. output:0 is one", node, slot_text));
  return TensorId{ref->graph->rank(), ref->graph->id(), *step, 0, ref->node, *slot};
}

}  // namespace

ScriptPhase read_findings(lua_State* L, SessionBox& box, std::optional<int> rank, std::optional<int64_t> step, const char* phase) {
  ScriptPhase out;
  const int list = lua_gettop(L);
  if (lua_isnil(L, list)) return out;
  if (!lua_istable(L, list)) {
    out.problem = fmt::format("rule error: {} returned {}; nil or a list of findings is expected", phase, value_text(L, list));
    return out;
  }
  for_each_element(L, list, phase, [&](int i) {
    if (!out.problem.empty()) return;
    const int entry = lua_gettop(L);
    if (!lua_istable(L, entry)) {
      out.problem = fmt::format("rule error: element {} of what {} returned is {}; a table with 'tensor' or 'node' is expected", i, phase,
                                value_text(L, entry));
      return;
    }
    const Result<TensorId> place = place_of(L, entry, box, rank, step);
    if (!place) {
      out.problem = fmt::format("rule error: {}: {}", phase, place.status().message());
      return;
    }
    ScriptVerdict verdict = read_verdict(L, kWhere);
    out.findings.push_back({*place, verdict.actual, std::move(verdict.details)});
  });
  return out;
}

}  // namespace msdbg::script
