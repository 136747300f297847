// The result of a command that runs a training: where it stopped, why, and its check.
#include <fmt/format.h>

#include <algorithm>

#include "msdbg/report.h"
#include "script/bind_parts.h"

namespace msdbg::script {
namespace {

int get_check(lua_State* L) { return self<RunBox>(L), push_check_of_run(L, 1), 1; }
int get_run_hits(lua_State* L) { return get_check(L), push_hits(L, -1), 1; }
int get_run_not_checked(lua_State* L) { return get_check(L), push_all_not_checked(L, -1), 1; }

int get_state(lua_State* L) { return give(L, live_state_name(self<RunBox>(L).result.state)); }
int get_reason(lua_State* L) { return give(L, stop_reason_name(self<RunBox>(L).result.reason)); }
int get_step(lua_State* L) { return give(L, self<RunBox>(L).result.step); }
int get_completed(lua_State* L) { return give(L, self<RunBox>(L).result.completed_steps); }
int get_steps_run(lua_State* L) { return give(L, self<RunBox>(L).result.steps_run); }
int get_held(lua_State* L) { return give(L, self<RunBox>(L).result.held); }
int get_node(lua_State* L) { return give(L, text_or_nil(self<RunBox>(L).result.node)); }
int get_at_begin(lua_State* L) { return give(L, self<RunBox>(L).result.at_begin); }

std::string count_text(int64_t n, std::string_view noun) { return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s"); }

std::string stop_text(const RunBox& run) {
  const RunResult& result = run.result;
  const std::string at_node = result.at_begin       ? ", before its first operator"
                              : result.node.empty() ? ""
                                                    : fmt::format(", after {}", printable(result.node));
  const std::string held = result.held ? "training is held" : std::string(live_state_name(result.state));
  switch (result.reason) {
    case StopReason::kDone:
      if (run.call == "recheck") return fmt::format("recheck of step {}: no hit", result.step);
      if (run.call == "finish") return fmt::format("step {} is done; {}", result.step, held);
      if (run.call == "next_node" || run.call == "run_to" || result.steps_run == 0)
        return fmt::format("step {}{}; {}", result.step, at_node, held);
      return fmt::format("step {} is done; {}", result.step, held);
    case StopReason::kHit: {
      const CheckResult& check = run.check->result;
      const auto hits = static_cast<int64_t>(std::max<uint64_t>(check.total_hits, check.hits.size()));
      return fmt::format("step {}  HIT  {}{}; {}", result.step, count_text(hits, "hit"),
                         run.call == "recheck" ? "" : at_node, held);
    }
    case StopReason::kNodeNotMet:
      return fmt::format("step {} ended before that node ran; {}", result.step, held);
    case StopReason::kPaused:
      return fmt::format("paused in step {}, {} completed; {}", result.step, count_text(result.completed_steps, "step"), held);
    case StopReason::kNotChecked:
      return fmt::format("step {}: something could not be checked; {}", result.step, held);
    case StopReason::kCutShort:
      return fmt::format("step {} was cut short{}; {}", result.step, at_node, held);
    case StopReason::kInterrupted:
      if (result.held) return fmt::format("interrupted after step {}; training is held", result.step);
      return fmt::format("interrupted in step {}; the training will be held when that step is over (pause waits for it)",
                         result.step);
    case StopReason::kEnded:
      return fmt::format("training has ended after {}", count_text(result.completed_steps, "step"));
    case StopReason::kLost:
      if (result.state != LiveState::kLost)
        return fmt::format("a rank was lost in step {}; the rest of the training is {}", result.step, live_state_name(result.state));
      return fmt::format("the connection to the training broke in step {}, after {}", result.step,
                         count_text(result.completed_steps, "step"));
  }
  return "";
}

// `fetch`: hits judged by the training come without statistics; fetch them while the value exists.
std::string hit_line(Session& session, const Hit& hit, bool fetch) {
  Stats stats = hit.stats;
  if (stats.known == 0 && fetch) {
    if (auto fetched = session.stats(hit.tensor)) stats = std::move(*fetched);
  }
  std::string what;
  for (const ParamResult& param : hit.params) {
    if (!param.hit) continue;
    what += fmt::format("{}{} {}", what.empty() ? "" : ", ", param.name, format_short(param.threshold));
    if (param.actual) what += fmt::format(" (actual {})", format_short(*param.actual));
  }
  for (const auto& [name, value] : hit.details)
    what += fmt::format("{}{} {}", what.empty() ? "" : ", ", printable(name), printable(value));
  if (const std::string bad = nonfinite_text(stats); !bad.empty())
    what += fmt::format("{}{}", what.empty() ? "" : ", ", bad);
  const std::string rank = session.ranks().size() > 1 ? fmt::format("rank {}  ", hit.tensor.rank) : "";
  return fmt::format("\n  {}{}:{}  {}{}{}", rank, printable(short_name(session, hit.tensor)), slot_name(hit.tensor.slot),
                     printable(hit.abbr.empty() ? hit.rule : hit.abbr), what.empty() ? "" : "  ", what);
}

// What came first, on whatever rank: the other hits follow from it. At the prompt, Ctrl-C ends this search and not what it is about.
void look_for_causes(lua_State* L, const RunBox& run) {
  try {
    require_causes(L, *run.check);
  } catch (const ScriptError&) {
    if (!run.session->vm->at_prompt) throw;
    clear_interrupt();
  }
}

int run_text(lua_State* L) {
  constexpr size_t kShown = 5;
  const RunBox& run = self<RunBox>(L);
  const CheckResult& check = run.check->result;
  if (run.session->session) look_for_causes(L, run);
  std::string text = stop_text(run);
  if (run.session->session) {
    SessionBox& box = *run.session;
    const bool fetch = run.suspension == box.suspension && box.in_use.empty() && box.live->state() == LiveState::kHeld;
    const std::vector<std::string> causes = cause_lines(*box.session, check);
    for (size_t i = 0; i < std::min(causes.size(), kShown); ++i) text += "\n  " + causes[i];
    std::vector<size_t> open = open_hits(check);
    if (open.size() > kShown) open.resize(kShown);
    for (const size_t i : open) text += hit_line(*box.session, check.hits[i], fetch);
    if (const auto explained = static_cast<int64_t>(check.explained.size()); explained > 0)
      text += fmt::format("\n  no fault: {}: {}", count_text(explained, "finding"), check.explained.front().what);
    const size_t more = check.hits.size() - open.size();
    if (more > 0) text += fmt::format("\n  ... {} {}: hits", more, open.empty() ? "in all" : "more");
  }
  for (const int id : run.removed) text += fmt::format("\n  watch {} was for one hit and is removed", id);
  if (!check.not_checked.empty()) {
    text += fmt::format("\n  not checked: {}, e.g. {}", count_text(static_cast<int64_t>(check.not_checked.size()), "tensor"),
                        printable(check.not_checked.front().reason));
  }
  return give(L, text);
}

constexpr Member kRunFields[] = {{"state", guard<get_state>},
                              {"reason", guard<get_reason>},
                              {"step", guard<get_step>},
                              {"completed_steps", guard<get_completed>},
                              {"steps_run", guard<get_steps_run>},
                              {"node", guard<get_node>},
                              {"at_begin", guard<get_at_begin>},
                              {"held", guard<get_held>},
                              {"hits", guard<get_run_hits>},
                              {"not_checked", guard<get_run_not_checked>},
                              {"check", guard<get_check>}};
constexpr Member kRunMeta[] = {{"__tostring", guard<run_text>}};

}  // namespace

void push_check_of_run(lua_State* L, int index) {
  const auto run = object_argument<RunBox>(L, index, "check");
  lua_getfenv(L, index);
  push_raw(L, -1, "check");
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    push_result(L, run->check);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "check");
  }
  lua_remove(L, -2);
}

void define_run_result(lua_State* L) {
  define_class<RunBox>(L, {.fields = kRunFields, .meta = kRunMeta});
}

}  // namespace msdbg::script
