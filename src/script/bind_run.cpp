// The commands that run a training, and the callbacks of s:on.
#include <fmt/format.h>

#include "script/bind_parts.h"
#include "script/interrupt.h"
#include "script/objects.h"
#include "script/run_status.h"

namespace msdbg::script {
namespace {

constexpr auto kPauseTimeout = std::chrono::seconds(30);
constexpr auto kTerminateTimeout = std::chrono::seconds(60);

// ---- callbacks -----------------------------------------------------------------------------------------------------

// Calls every callback of `event` with the values on top of the stack. False: one failed; `problem` has its error, and the others
// were not called. Sets `*stop` if a callback returned false.  [-nargs, +0, m]
bool call_back(lua_State* L, SessionBox& box, const char* event, int nargs, std::unique_ptr<FunctionRef>* problem,
               bool* stop = nullptr) {
  const int first = lua_gettop(L) - nargs + 1;
  const auto callbacks = box.callbacks[event];  // a callback may add another one
  bool good = true;
  for (const auto& callback : callbacks) {
    callback->push(L);
    for (int i = 0; i < nargs; ++i) lua_pushvalue(L, first + i);
    if (!protected_call(L, nargs, 1)) {
      *problem = std::make_unique<FunctionRef>(*box.vm, L);  // pops the error object
      good = false;
      break;
    }
    if (stop != nullptr && lua_isboolean(L, -1) && !truth_at(L, -1)) *stop = true;
    lua_pop(L, 1);
  }
  lua_settop(L, first - 1);
  return good;
}

// s:on("hit" | "step" | "end", fn); false instead of a function removes the callbacks of that event.
int on_event(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  live_of(box, "on");
  const std::string event = text_argument(L, 2, "on: event");
  const std::string known[] = {"hit", "step", "end"};
  if (std::find(std::begin(known), std::end(known), event) == std::end(known))
    misuse(with_suggestion(fmt::format("on: no event '{}'; there are hit, step and end", printable(event)), event, known));
  if (lua_isboolean(L, 3) && !truth_at(L, 3)) {
    box.callbacks.erase(event);
    return 0;
  }
  if (!lua_isfunction(L, 3))
    misuse(fmt::format("on: a function (or false, to forget) is expected, not {}", value_text(L, 3)));
  lua_pushvalue(L, 3);
  box.callbacks[event].push_back(std::make_shared<FunctionRef>(*box.vm, L));
  return 0;
}

// ---- running -------------------------------------------------------------------------------------------------------

void send_watchpoints(SessionBox& box) {
  if (!box.watches_changed) return;
  std::vector<Watchpoint> enabled = watchpoints_of(box);
  std::erase_if(enabled, [](const Watchpoint& watch) { return !watch.enabled; });
  const Status status = box.live->set_watchpoints(enabled);
  if (!status.ok()) throw ScriptError(status);
  box.watches_changed = false;
}

// Removes the hits at `begin` and behind it for which `is_passed` holds.
void pass_hits(CheckResult& check, std::vector<Hit>::iterator begin, const std::function<bool(const Hit&)>& is_passed) {
  const auto kept = std::remove_if(begin, check.hits.end(), is_passed);
  check.total_hits -= static_cast<uint64_t>(check.hits.end() - kept);
  check.hits.erase(kept, check.hits.end());
}

// Drops hits of watchpoints that let them pass, and removes one-shot watchpoints. All hits of a watchpoint at one stop count as one.
void count_stop(SessionBox& box, CheckResult& check, size_t first, std::vector<int>* removed) {
  const auto begin = check.hits.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<int> passed;
  for (const auto& watch : box.watches) {
    const int64_t from = watch->from_step;
    if (from > 0) {
      const auto early = [&](const auto& each) { return each.watch_id == watch->point.id && each.tensor.step < from; };
      pass_hits(check, begin, early);
      std::erase_if(check.not_checked, early);
    }
    if (std::none_of(begin, check.hits.end(), [&](const Hit& hit) { return hit.watch_id == watch->point.id; })) continue;
    if (watch->ignore > 0) {
      --watch->ignore;
      passed.push_back(watch->point.id);
      continue;
    }
    if (!watch->commands.empty()) box.due_commands.push_back(watch->commands);
    if (!watch->once) continue;
    watch->removed = true;
    removed->push_back(watch->point.id);
  }
  pass_hits(check, begin, [&](const Hit& hit) { return std::find(passed.begin(), passed.end(), hit.watch_id) != passed.end(); });
  if (std::erase_if(box.watches, [](const auto& watch) { return watch->removed; }) > 0) box.watches_changed = true;
}

// Calls the callbacks that are due at the end of a command.
void call_back_at_end(lua_State* L, SessionBox& box, int result, int64_t steps_told, std::unique_ptr<FunctionRef>* problem) {
  const RunBox& run = **holder_at<RunBox>(L, result);
  if (run.result.held && run.result.completed_steps > steps_told) {
    push(L, run.result.step);
    lua_pushvalue(L, result);
    if (!call_back(L, box, "step", 2, problem)) return;
  }
  if (!box.callbacks["hit"].empty() && run.result.reason == StopReason::kHit) {
    push_check_of_run(L, result);
    push_hits(L, -1);
    for_each_element(L, -1, "hits", [&](int) {
      if (*problem) return;
      lua_pushvalue(L, result);
      call_back(L, box, "hit", 2, problem);
    });
    lua_pop(L, 2);
    if (*problem) return;
  }
  const bool over = run.result.state == LiveState::kEnded || run.result.state == LiveState::kLost;
  if (over && !box.end_reported) {
    box.end_reported = true;
    lua_pushvalue(L, result);
    call_back(L, box, "end", 1, problem);
  }
}

// Runs one command and leaves its result on the stack.
int command(lua_State* L, SessionBox& box, const char* call, RunRequest* request,
            const std::function<Result<RunResult>(LiveSession&)>& run) {
  LiveSession& live = live_of(box, call);
  const InUse guard(box, call);
  box.thread = L;
  send_watchpoints(box);
  int64_t steps_told = live.completed_steps();
  std::unique_ptr<FunctionRef> problem;
  std::vector<int> removed;
  const auto& show = box.vm->options.on_run_status;
  box.due_commands.clear();
  if (request != nullptr) {
    ++box.runs;
    request->on_hits = [&](CheckResult& check, size_t first) { count_stop(box, check, first, &removed); };
    request->on_progress = [&box, &show](const RunProgress& progress) {
      report_events(box);  // a warning may be about what the command waits for
      if (show) show(status_text(progress));
    };
  }
  if (request != nullptr && !box.callbacks["step"].empty()) {
    request->on_step = [&](int64_t step) {
      box.begin_suspension();
      if (show) show("");
      ++steps_told;
      bool stop = false;
      push(L, step);
      return call_back(L, box, "step", 1, &problem, &stop) && !stop;
    };
  }
  auto result = run(live);
  if (show) show("");
  box.begin_suspension();
  report_events(box);
  if (!result) throw ScriptError(result.status());
  if (result->reason == StopReason::kInterrupted && box.vm->at_prompt && !box.vm->interrupt_reported) {
    // The result reports the interrupt once: a second Ctrl-C also ends a loop around this call.
    box.vm->interrupt_reported = true;
    clear_interrupt();
  }
  auto made = std::make_shared<RunBox>();
  made->session = box.shared_from_this();
  made->call = call;
  made->suspension = box.suspension;
  made->removed = std::move(removed);
  made->check = std::make_shared<ResultBox>();
  made->check->session = made->session;
  made->check->suspension = box.suspension;
  made->check->result = std::move(result->check);
  made->result = std::move(*result);
  made->result.check = {};
  if (!made->check->result.hits.empty() || !made->check->result.not_checked.empty() || box.last_result == nullptr ||
      !box.watches.empty())
    box.last_result = std::make_shared<ResultBox>(ResultBox{nullptr, made->check->result, "", {}, box.suspension});
  push_object(L, std::move(made));
  lua_newtable(L);
  lua_setfenv(L, -2);
  const int place = lua_gettop(L);
  if (!problem) call_back_at_end(L, box, place, steps_told, &problem);
  if (problem) {
    problem->push(L);
    throw PendingError();
  }
  return 1;
}

int run(lua_State* L, SessionBox& box, const char* call, RunRequest request) {
  return command(L, box, call, &request, [&](LiveSession& live) { return live.run(request); });
}

// A node object or the name of a node.
std::string node_name(lua_State* L, int index, SessionBox& box, const char* call) {
  if (const NodeBox* node = object_at<NodeBox>(L, index)) return node->node().name;
  const auto name = text_at(L, index);
  if (!name) misuse(fmt::format("{}: a node or its name is expected, not {}", call, value_text(L, index)));
  const NodeRef ref = value_or_throw(find_node(box.open().graphs(), *name));
  return ref.graph->node(ref.node).name;
}

// s:step(), s:step(n), s:step{n=, node=, timeout=}
int step(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  live_of(box, "step");
  RunRequest request;
  if (lua_istable(L, 2)) {
    OptionTable options(L, 2, "step");
    if (const auto count = options.integer("n")) request.count = *count;
    options.with("node", [&](int at) {
      request.kind = RunKind::kToNode;
      request.node = node_name(L, at, box, "step: option 'node'");
    });
    request.timeout = timeout_option(options, "step");
    options.finish();
  } else if (!lua_isnoneornil(L, 2)) {
    request.count = integer_argument(L, 2, "step: number of steps");
  }
  if (request.count < 1) misuse(fmt::format("step: number of steps: 1 or more is expected, not {}", request.count));
  return run(L, box, "step", std::move(request));
}

int continue_session(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  live_of(box, "continue");
  RunRequest request;
  request.kind = RunKind::kContinue;
  OptionTable options(L, 2, "continue");
  if (const auto steps = options.integer("steps", 1, INT64_MAX)) {
    request.kind = RunKind::kStep;
    request.count = *steps;
  }
  request.timeout = timeout_option(options, "continue");
  options.finish();
  return run(L, box, "continue", std::move(request));
}

int run_next_node(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  live_of(box, "next_node");
  RunRequest request;
  request.kind = RunKind::kNextNode;
  OptionTable options(L, 2, "next_node");
  request.timeout = timeout_option(options, "next_node");
  options.finish();
  return run(L, box, "next_node", std::move(request));
}

int finish(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  live_of(box, "finish");
  RunRequest request;
  request.kind = RunKind::kFinish;
  OptionTable options(L, 2, "finish");
  request.timeout = timeout_option(options, "finish");
  options.finish();
  return run(L, box, "finish", std::move(request));
}

int run_to(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  live_of(box, "run_to");
  RunRequest request;
  request.kind = RunKind::kToNode;
  request.node = node_name(L, 2, box, "run_to");
  OptionTable options(L, 3, "run_to");
  request.timeout = timeout_option(options, "run_to");
  options.finish();
  return run(L, box, "run_to", std::move(request));
}

template <typename Call>
int with_timeout(lua_State* L, const char* call, std::chrono::milliseconds otherwise, Call act) {
  SessionBox& box = self<SessionBox>(L);
  live_of(box, call);
  OptionTable options(L, 2, call);
  const auto timeout = timeout_option(options, call).value_or(otherwise);
  options.finish();
  return command(L, box, call, nullptr, [&](LiveSession& live) { return act(live, timeout); });
}

int pause(lua_State* L) {
  return with_timeout(L, "pause", kPauseTimeout, [](LiveSession& live, auto timeout) { return live.pause(timeout); });
}
int attach(lua_State* L) {
  return with_timeout(L, "attach", kPauseTimeout, [](LiveSession& live, auto timeout) { return live.attach(timeout); });
}

// core.due_commands(session) -> list of lists of entries; returns them once
int due_commands(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "due_commands: session");
  const auto due = std::exchange(box->due_commands, {});
  push_list(L, due, [L](const auto& commands) { push_list(L, commands, [L](const std::string& text) { push(L, text); }); });
  return 1;
}

// core.run_count(session): how many commands have run the training
int run_count(lua_State* L) { return give(L, object_argument<SessionBox>(L, 1, "run_count: session")->runs); }

int terminate(lua_State* L) {
  return with_timeout(L, "terminate", kTerminateTimeout,
                      [](LiveSession& live, auto timeout) { return live.terminate(timeout); });
}

}  // namespace

int recheck_live(lua_State* L, SessionBox& box) {
  if (!lua_isnoneornil(L, 2)) misuse("recheck: takes no options; it judges the current values again");
  return command(L, box, "recheck", nullptr, [](LiveSession& live) { return live.recheck(); });
}

void bind_run(lua_State* L) {
  define_run_result(L);
  add_methods<SessionBox>(L, {{"step", guard<step>}, {"continue", guard<continue_session>}, {"next_node", guard<run_next_node>},
                              {"run_to", guard<run_to>}, {"finish", guard<finish>}, {"pause", guard<pause>}, {"attach", guard<attach>},
                              {"terminate", guard<terminate>}, {"on", guard<on_event>}});
  add_functions(L, {{"due_commands", guard<due_commands>}, {"run_count", guard<run_count>}});
}

}  // namespace msdbg::script
