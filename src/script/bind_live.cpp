// msdbg.listen, properties of the training, waiting for it and detaching. The commands that run it are in bind_run.cpp.
#include <fmt/format.h>

#include <cmath>

#include "script/interrupt.h"
#include "script/objects.h"
#include "script/state.h"

namespace msdbg::script {
namespace {

constexpr double kMostWaitSeconds = 1e9;

std::chrono::milliseconds milliseconds_of(double seconds, std::string_view what) {
  if (!(seconds >= 0 && seconds <= kMostWaitSeconds))
    misuse(fmt::format("{}: seconds from 0 to 1e9 are expected, not {}", what, format_double(seconds)));
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

// ---- listening -----------------------------------------------------------------------------------------------------

// Option `wait`: seconds, or false not to wait.
struct Wait {
  bool at_all = true;
  std::optional<std::chrono::milliseconds> timeout;
};

Wait read_wait(lua_State* L, OptionTable& options) {
  Wait wait;
  options.with("wait", [&](int at) {
    if (lua_isboolean(L, at)) wait.at_all = truth_at(L, at);
    else if (const auto seconds = number_at(L, at)) wait.timeout = milliseconds_of(*seconds, options.what("wait"));
    else misuse(fmt::format("listen: option 'wait': seconds or false is expected, not {}", value_text(L, at)));
  });
  return wait;
}

ListenOptions read_listen_options(OptionTable& options, CheckOptions* defaults) {
  ListenOptions listen;
  if (const auto port = options.integer("port", 0, 65535)) listen.port = static_cast<int>(*port);
  if (const auto ranks = options.integer("ranks", 1, kMostLiveRanks)) listen.ranks = static_cast<int>(*ranks);
  if (const auto bind = options.text("bind")) listen.bind = *bind;
  if (const auto record = options.text("record")) listen.record = *record;
  if (const auto history = options.integer("history", 0, 1000000)) listen.history_steps = static_cast<int>(*history);
  listen.history_tensors = listen.history_steps > 0 ? kHistoryTensors : 0;
  if (const auto graph_from = options.text("graph_from")) listen.graph_from = *graph_from;
  if (const auto seconds = options.number("answer_timeout")) {
    if (!(*seconds > 0 && *seconds <= 1e6))
      misuse(fmt::format("listen: option 'answer_timeout': above 0 and up to 1e6 seconds are expected, not {}", format_double(*seconds)));
    listen.view_deadline = milliseconds_of(*seconds, options.what("answer_timeout"));
  }
  read_check_options(options, defaults);
  listen.mem_limit_bytes = defaults->mem_limit_bytes;
  return listen;
}

int listen(lua_State* L) {
  Vm& vm = vm_of(L);
  OptionTable options(L, 1, "listen");
  const Wait wait = read_wait(L, options);
  CheckOptions defaults = vm.options.check_defaults;
  const ListenOptions listen_options = read_listen_options(options, &defaults);
  options.finish();
  if (!vm.options.listen) misuse("listen: this program was built without live sessions");
  auto box = make_session_box(vm, value_or_throw(vm.options.listen(listen_options)));
  box->defaults = defaults;
  if (vm.options.on_event) vm.options.on_event({Severity::kInfo, listening_text(*box->live, listen_options.bind)});
  if (wait.at_all) {
    const Status status = box->live->wait_until_held(wait.timeout);
    report_events(*box);
    if (status.code() == Code::kNotFound) return push_absence(L, status);
    if (!status.ok()) throw ScriptError(status);
    box->begin_suspension();
  }
  push_object(L, std::move(box));
  return 1;
}

// ---- fields --------------------------------------------------------------------------------------------------------

// nil for a dump and for a closed session.
template <typename Value>
int live_field(lua_State* L, Value value) {
  SessionBox& box = self<SessionBox>(L);
  if (!box.session || box.live == nullptr) return lua_pushnil(L), 1;
  return give(L, value(*box.live));
}

int get_completed_steps(lua_State* L) {
  return live_field(L, [](LiveSession& live) { return live.completed_steps(); });
}
int get_current_node(lua_State* L) {
  return live_field(L, [](LiveSession& live) { return text_or_nil(live.current_node()); });
}
int get_address(lua_State* L) {
  return live_field(L, [](LiveSession& live) { return live.address(); });
}

// ---- waiting and detaching -----------------------------------------------------------------------------------------

// s:wait{timeout=}: the state once the training is held or over; after detach(), once it is over. nil, message, code after a
// timeout.
int wait(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  LiveSession& live = live_of(box, "wait");
  OptionTable options(L, 2, "wait");
  const auto timeout = timeout_option(options, "wait");
  options.finish();
  Status status;
  {
    const InUse guard(box, "wait");
    status = live.detached() ? live.wait_until_ended(timeout) : live.wait_until_held(timeout);
  }
  box.begin_suspension();
  report_events(box);
  if (status.code() == Code::kNotFound) return push_absence(L, status);
  if (!status.ok() && status.code() != Code::kPeerLost) throw ScriptError(status);
  return give(L, live_state_name(live.state()));
}

// s:keep_readable(on) -> how many additional tensors the training keeps from the next step on
int keep_readable(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  LiveSession& live = live_of(box, "keep_readable");
  const Selector on = selector_argument(L, 2, "keep_readable: nodes");
  const InUse guard(box, "keep_readable");
  int64_t kept = 0;
  for (const NodeRef& ref : value_or_throw(resolve_or_explain(on, live.graphs()))) {
    const Result<bool> more = live.keep_readable({ref.graph->rank(), ref.graph->id(), live.current_step(), 0, ref.node, {Io::kOutput, 0}});
    if (!more && more.status().code() != Code::kUnsupported) throw ScriptError(more.status());
    kept += more && *more ? 1 : 0;
  }
  report_events(box);
  return give(L, kept);
}

int detach(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  LiveSession& live = live_of(box, "detach");
  {
    const InUse guard(box, "detach");
    const Status status = live.detach();
    if (!status.ok()) throw ScriptError(status);
  }
  box.watches_changed = true;
  report_events(box);
  return 0;
}

}  // namespace

std::optional<std::chrono::milliseconds> timeout_option(OptionTable& options, std::string_view call) {
  const auto seconds = options.number("timeout");
  if (!seconds) return std::nullopt;
  return milliseconds_of(*seconds, fmt::format("{}: option 'timeout'", call));
}

LiveSession& live_of(SessionBox& box, std::string_view call) {
  box.open();
  if (box.live == nullptr) {
    throw ScriptError("unsupported",
                      fmt::format("{}: a dump cannot be driven, all its steps are there; use s:goto_step(n), "
                                  "s:each_step() or s:check()",
                                  call),
                      true);
  }
  return *box.live;
}

void report_events(SessionBox& box) {
  const std::vector<LiveEvent> events = box.live->take_events();
  const ScriptOptions& options = box.vm->options;
  if (!events.empty() && options.on_run_status) options.on_run_status("");
  for (const LiveEvent& event : events) {
    if (options.on_event) options.on_event(event);
  }
}

void bind_live(lua_State* L) {
  add_methods<SessionBox>(L, {{"wait", guard<wait>}, {"detach", guard<detach>}, {"keep_readable", guard<keep_readable>}},
                          {{"completed_steps", guard<get_completed_steps>}, {"current_node", guard<get_current_node>},
                           {"address", guard<get_address>}});
  add_functions(L, {{"listen", guard<listen>}});
}

}  // namespace msdbg::script

namespace msdbg {

using namespace script;

std::vector<Script::Training> Script::trainings() {
  std::vector<Training> out;
  for (const auto& weak : state_->vm.live_sessions) {
    const auto box = weak.lock();
    if (box && box->session && box->drives_training()) out.push_back({box->live, box->live->detached()});
  }
  return out;
}

void Script::report_events() {
  // The receiver of an event may close a session.
  const auto sessions = state_->vm.live_sessions;
  for (const auto& weak : sessions) {
    const auto box = weak.lock();
    if (!box || !box->session) continue;
    box->refresh_state();
    script::report_events(*box);
  }
}

std::vector<int> Script::event_descriptors() {
  std::vector<int> out;
  for (const auto& weak : state_->vm.live_sessions) {
    const auto box = weak.lock();
    if (box && box->session && box->live->event_descriptor() >= 0) out.push_back(box->live->event_descriptor());
  }
  return out;
}

std::string listening_text(const LiveSession& session, const std::string& bind) {
  const std::string address = session.address();
  const size_t colon = address.rfind(':');
  std::string text = fmt::format(
      "listening on {}. On the training side:\n"
      "  export ENABLE_MS_DEBUGGER=1 MS_DEBUGGER_HOST={} MS_DEBUGGER_PORT={}",
      address, address.substr(0, colon), colon == std::string::npos ? "" : address.substr(colon + 1));
  if (!bind.starts_with("127.") && bind != "localhost" && bind != "::1" && bind != "[::1]") {
    text += fmt::format(
        "\nwarning: the protocol has neither encryption nor login; anyone who can reach {} can pose as the training, and the "
        "network sees its values",
        bind);
  }
  return text;
}

}  // namespace msdbg
