// msdbg.open and the session object. Its Lua part is scripts/msdbg/session.lua.
#include <fmt/format.h>

#include <algorithm>

#include "msdbg/answers.h"
#include "script/objects.h"
#include "script/push_answer.h"

namespace msdbg::script {
namespace {

constexpr double kLeastMemoryMb = 64;

// ---- opening -------------------------------------------------------------------------------------------------------

int open_session(lua_State* L) {
  Vm& vm = vm_of(L);
  const std::string path = text_argument(L, 1, "open: path");
  OptionTable options(L, 2, "open");
  DumpOptions dump;
  dump.net = options.text("net");
  if (auto ranks = options.numbers("rank")) dump.ranks = *ranks;
  dump.index = options.boolean("index").value_or(true);
  CheckOptions defaults = vm.options.check_defaults;
  read_check_options(options, &defaults);
  options.finish();
  if (!vm.options.open) misuse("open: this program was built without a way to open sessions");
  auto box = make_session_box(vm, value_or_throw(vm.options.open(path, dump)));
  box->defaults = defaults;
  push_object(L, std::move(box));
  return 1;
}

// ---- fields --------------------------------------------------------------------------------------------------------

int get_session_kind(lua_State* L) { return give(L, session_kind_name(self<SessionBox>(L).kind)); }
int get_session_state(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  if (box.live != nullptr && box.in_use.empty()) box.refresh_state();
  if (!box.session) return give(L, "closed");
  if (box.live == nullptr) return give(L, "open");
  // The state that goes with current_step: another suspension may have begun since. While a check's threads read this training, a
  // function of the check must not let another one in.
  return give(L, live_state_name(box.seen_state));
}
int get_steps(lua_State* L) { return give(L, self<SessionBox>(L).open().steps()); }
int get_ranks(lua_State* L) { return give(L, self<SessionBox>(L).open().ranks()); }

int get_current_step(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  box.open();
  return give(L, box.current_step);
}

int get_current_rank(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  box.open();
  return give(L, box.current_rank);
}

int get_graphs(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  push_list(L, box.open().graphs(), [&](const GraphPtr& graph) {
    lua_newtable(L);
    set_field(L, "name", graph->name());
    set_field(L, "id", graph->id());
    set_field(L, "rank", graph->rank());
    set_field(L, "root_id", graph->root_id());
    set_field(L, "nodes", graph->nodes().size());
    set_field(L, "from_file", graph->from_file());
    set_field(L, "steps", box.open().steps(graph->rank(), graph->id()));
    set_result_class(L, "graph");
  });
  return 1;
}

// The training process and its peculiarities.
void push_peer(lua_State* L, const LivePeer& peer) {
  lua_newtable(L);
  set_field(L, "address", peer.address);
  set_field(L, "program", peer.program);
  set_field(L, "version", peer.version);
  set_field(L, "named", peer.named);
  set_field(L, "backend", peer.backend);
  set_field(L, "device", peer.device);
  set_field(L, "counts_after_hold", peer.counts_after_hold);
  set_field(L, "has_levels", peer.has_levels);
  set_field(L, "has_recheck", peer.has_recheck);
  set_field(L, "has_previous", peer.has_previous);
  push(L, peer.notes);
  set_result_class(L, "notes");
  lua_setfield(L, -2, "notes");
  set_result_class(L, "peer");
}

int get_info(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  const SessionInfo& info = box.open().info();
  lua_newtable(L);
  set_field(L, "kind", session_kind_name(info.kind));
  set_field(L, "source", info.source);
  set_field(L, "short_name", info.short_name);
  set_field(L, "layout", info.layout);
  set_field(L, "epoch", info.epoch);
  set_field(L, "framework", info.framework);
  set_field(L, "framework_version", info.framework_version);
  set_field(L, "device_target", info.device_target);
  set_field(L, "nets", info.nets);
  if (box.live != nullptr) {
    push_peer(L, box.live->peer());
    lua_setfield(L, -2, "peer");
    push_list(L, box.live->live_ranks(), [L](const LiveRank& rank) {
      lua_newtable(L);
      set_field(L, "rank", rank.rank);
      set_field(L, "state", live_state_name(rank.state));
      set_field(L, "step", rank.step);
      set_field(L, "completed_steps", rank.completed_steps);
      if (!rank.node.empty()) set_field(L, "current_node", rank.node);
      push_peer(L, rank.peer);
      lua_setfield(L, -2, "peer");
      set_result_class(L, "live_rank");
    });
    lua_setfield(L, -2, "ranks");
  }
  set_result_class(L, "info");
  return 1;
}

// The capabilities of the session and its peer; `state` says whether they are available now.
int get_can(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  const Session& session = box.open();
  const bool live = box.live != nullptr;
  const bool by_node = live && box.live->peer().backend != "Ascend";
  lua_newtable(L);
  for (const char* command : {"step", "continue", "pause", "terminate", "detach", "attach", "wait"})
    set_field(L, command, live && session.can_step());
  set_field(L, "next_node", by_node);
  set_field(L, "run_to", by_node);
  set_field(L, "finish", by_node);
  set_field(L, "goto_step", true);
  set_field(L, "recheck", !live || box.live->peer().has_recheck);
  set_result_class(L, "can");
  return 1;
}

// ---- methods -------------------------------------------------------------------------------------------------------

int close_session(lua_State* L) { return self<SessionBox>(L).close(), 0; }

int goto_step(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  const auto steps = box.open().steps();
  // A live session keeps the statistics of its last steps; there, a negative number counts back from the current step.
  const bool now = box.live != nullptr && lua_isnoneornil(L, 2);
  int64_t step = now ? box.live->current_step() : integer_argument(L, 2, "goto_step: step");
  const int64_t asked = step;
  if (box.live != nullptr && step < 0) step += box.live->current_step();
  if (now) {
    box.current_step = step;
    return 0;
  }
  if (!std::binary_search(steps.begin(), steps.end(), step)) {
    std::string have = steps.empty() ? "none" : numbers_text(steps);
    if (have.size() > 60) have = fmt::format("{} steps from {} to {}", steps.size(), steps.front(), steps.back());
    if (step == asked) misuse(fmt::format("no step {} (have {})", step, have));
    const std::string which = fmt::format("{} before step {}", -asked, box.live->current_step());
    if (step < 0) misuse(fmt::format("no step {} (have {})", which, have));
    misuse(fmt::format("nothing is kept of step {}, {}: its statistics were not requested (have {})", step, which, have));
  }
  box.current_step = step;
  return 0;
}

// s:goto_rank(2); without an argument or with "all", every rank again.
int goto_rank(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  const std::span<const int> ranks = box.open().ranks();
  std::optional<int> rank;
  if (!lua_isnoneornil(L, 2) && text_at(L, 2) != "all") {
    const int64_t asked = integer_argument(L, 2, "goto_rank: rank (a number, or 'all')");
    if (std::find(ranks.begin(), ranks.end(), asked) == ranks.end()) {
      misuse(fmt::format("no rank {} (have {})", asked, numbers_text(std::vector<int64_t>(ranks.begin(), ranks.end()))));
    }
    rank = static_cast<int>(asked);
  }
  box.current_rank = rank;
  // The last check again is one of these ranks.
  if (box.last_check) box.last_check->ranks = rank ? IntSet::of(*rank) : box.defaults.ranks;
  return 0;
}

int find_tensor(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  Session& session = box.open();
  const std::string name = text_argument(L, 2, "tensor: name");
  OptionTable options(L, 3, "tensor");
  const int64_t step = step_option(options, box);
  const auto rank = rank_option(options, box), graph = options.id("graph");
  const auto execution = static_cast<uint32_t>(options.integer("execution", 0, UINT32_MAX).value_or(0));
  options.finish();
  const TensorId id = value_or_throw(resolve_tensor(session, name, step, rank, graph, execution));
  return push_tensor(L, box.shared_from_this(), id);
}

// s:tensors { on =, steps =, ranks =, slots = }: the dumped tensors, in execution order.
int list_tensors(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  Session& session = box.open();
  OptionTable options(L, 2, "tensors");
  TensorQuery query;
  if (auto steps = options.numbers("steps"))
    query.steps = *steps;
  else if (box.current_step)
    query.steps = IntSet::of(*box.current_step);
  query.ranks = ranks_option(options, box);
  std::vector<NodeRef> nodes;
  options.with("on", [&](int at) {
    nodes = value_or_throw(resolve_or_explain(selector_argument(L, at, options.what("on")), session.graphs()));
    query.nodes = &nodes;
  });
  const std::string slots = options.text("slots").value_or("output");
  options.finish();
  const ChosenSlots chosen = read_slots(slots, "tensors: option 'slots'");
  query.inputs = chosen.inputs;
  query.outputs = chosen.outputs;
  query.slot = chosen.slot;
  lua_newtable(L);
  int i = 0;
  for (const TensorId& id : session.tensors(query)) {
    const int pushed = push_tensor(L, box.shared_from_this(), id);
    if (pushed != 1) {
      lua_pop(L, pushed);
      continue;
    }
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

// s:overwritten { steps =, ranks = }: values that were overwritten between two calls, with their tensors.
int list_overwritten(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  Session& session = box.open();
  OptionTable options(L, 2, "overwritten");
  const IntSet steps = options.numbers("steps").value_or(box.current_step ? IntSet::of(*box.current_step) : IntSet::all());
  const IntSet ranks = ranks_option(options, box);
  options.finish();
  lua_newtable(L);
  int i = 0;
  for (const int rank : session.ranks()) {
    if (!ranks.contains(rank)) continue;
    for (const int64_t step : session.steps()) {
      if (!steps.contains(step)) continue;
      for (const Overwritten& each : session.overwritten(rank, step)) {
        push_answer(L, overwritten_answer(session, each), "overwritten");
        const int pushed = push_tensor(L, box.shared_from_this(), each.after);
        if (pushed != 1) {
          lua_pop(L, pushed + 1);
          continue;
        }
        lua_setfield(L, -2, "tensor");
        lua_rawseti(L, -2, ++i);
      }
    }
  }
  return 1;
}

int session_text(lua_State* L) {
  const SessionBox& box = self<SessionBox>(L);
  if (!box.session) return give(L, fmt::format("<session {} (closed)>", printable(box.source)));
  const std::string head = fmt::format("<session {} {} step {}", session_kind_name(box.kind), printable(box.session->info().short_name),
                                       step_text(box));
  if (box.live != nullptr) return give(L, fmt::format("{} {}>", head, live_state_name(box.live->state())));
  return give(L, fmt::format("{} of {}>", head, box.session->steps().size()));
}

constexpr Member kSessionMethods[] = {{"close", guard<close_session>},
                               {"goto_step", guard<goto_step>},
                               {"goto_rank", guard<goto_rank>},
                               {"tensor", guard<find_tensor>},
                               {"tensors", guard<list_tensors>},
                               {"overwritten", guard<list_overwritten>}};
constexpr Member kSessionFields[] = {
    {"kind", guard<get_session_kind>},   {"state", guard<get_session_state>}, {"current_step", guard<get_current_step>},
    {"current_rank", guard<get_current_rank>},
    {"steps", guard<get_steps>}, {"ranks", guard<get_ranks>}, {"graphs", guard<get_graphs>},
    {"info", guard<get_info>},   {"can", guard<get_can>}};
constexpr Member kSessionMeta[] = {{"__tostring", guard<session_text>}};

}  // namespace

void read_check_options(OptionTable& options, CheckOptions* into) {
  if (const auto semantics = options.text("semantics")) into->semantics = value_or_throw(parse_semantics(*semantics));
  if (const auto nan = options.text("nan")) into->nan = value_or_throw(parse_nan_verdict(*nan));
  if (const auto threads = options.integer("threads", 0, 4096)) into->threads = static_cast<unsigned>(*threads);
  if (const auto limit = options.number("mem_limit")) {
    if (!(*limit >= kLeastMemoryMb && *limit < 1e12))
      misuse(fmt::format("option 'mem_limit': {} MB or more is expected, not {}", kLeastMemoryMb, *limit));
    into->mem_limit_bytes = static_cast<uint64_t>(*limit * 1048576.0);
  }
}

int64_t step_option(OptionTable& options, const SessionBox& session) {
  if (const auto step = options.integer("step")) return *step;
  if (!session.current_step) misuse("this session has no steps; name one with step = N");
  return *session.current_step;
}

IntSet ranks_option(OptionTable& options, const SessionBox& session) {
  if (const auto ranks = options.numbers("ranks")) return *ranks;
  return session.current_rank ? IntSet::of(*session.current_rank) : session.defaults.ranks;
}

std::optional<int> rank_option(OptionTable& options, const SessionBox& session) {
  const auto rank = options.id("rank");
  return rank ? rank : session.current_rank;
}

void bind_session(lua_State* L) {
  define_class<SessionBox>(L, {.methods = kSessionMethods, .fields = kSessionFields, .meta = kSessionMeta});
  add_functions(L, {{"open", guard<open_session>}});
}

}  // namespace msdbg::script
