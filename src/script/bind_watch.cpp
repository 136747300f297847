// Watchpoints: from the table of s:watch{} to a Watchpoint, and the object that edits it.
#include <fmt/format.h>

#include <algorithm>

#include "script/bind_parts.h"
#include "script/objects.h"
#include "script/rule_run.h"

namespace msdbg::script {
namespace {

std::shared_ptr<SessionBox> session_of(const WatchBox& watch) {
  auto session = watch.session.lock();
  if (!session || !session->session) throw ScriptError("closed", "session is closed");
  if (watch.removed) throw ScriptError("removed", fmt::format("watchpoint {} was removed", watch.point.id));
  return session;
}

}  // namespace

ChosenSlots read_slots(const std::string& text, std::string_view what) {
  if (text == "all") return {true, true, {}};
  if (text == "input") return {true, false, {}};
  if (text == "output") return {false, true, {}};
  const auto slot = parse_slot(text);
  if (!slot) misuse(fmt::format("{}: 'output', 'input', 'all' or a slot like 'input:1' is expected, not '{}'", what, text));
  return {slot->io == Io::kInput, slot->io == Io::kOutput, slot->index};
}

void set_slots(Watchpoint* point, const std::string& text) {
  const ChosenSlots chosen = read_slots(text, "watch: option 'slots'");
  point->inputs = chosen.inputs;
  point->outputs = chosen.outputs;
  point->slot = chosen.slot;
}

namespace {

using Parameters = std::map<std::string, double, std::less<>>;

// The names of the condition's parameters, including hidden ones, which scripts may set.
std::vector<std::string> parameter_names(const ConditionSpec& spec) {
  std::vector<std::string> out;
  for (const ParamSpec& param : spec.params) out.emplace_back(param.name);
  return out;
}

// Reads the keys that are parameters of `spec`.
Parameters read_parameters(OptionTable& options, const ConditionSpec& spec, lua_State* L) {
  Parameters out;
  for (const std::string& name : parameter_names(spec)) {
    options.with(name.c_str(), [&](int at) {
      const std::string what = fmt::format("watch: parameter '{}' of {}", name, spec.id);
      out[name] = lua_isboolean(L, at) ? truth_at(L, at) : number_argument(L, at, what);
    });
  }
  return out;
}

Condition with_parameters(const Condition& base, const Parameters& extra) {
  Parameters all = base.params;
  for (const auto& [name, value] : extra) all[name] = value;
  return value_or_throw(make_condition(base.spec->id, all));
}

// The text form of `when`. A lone id leaves all parameters to the table: no default overrides them.
When read_when(const std::string& when, OptionTable& options, lua_State* L) {
  if (const auto spec = find_condition(trim(when))) {
    const Parameters parameters = read_parameters(options, **spec, L);
    options.finish();
    return value_or_throw(make_condition((*spec)->id, parameters));
  }
  When parsed = value_or_throw(parse_when(when));
  if (const Condition* condition = std::get_if<Condition>(&parsed)) {
    const Parameters parameters = read_parameters(options, *condition->spec, L);
    options.finish();
    if (!parameters.empty()) return with_parameters(*condition, parameters);
    return parsed;
  }
  options.finish();
  return parsed;
}

void resolve_watch(SessionBox& session, WatchBox* watch) {
  const auto graphs = session.open().graphs();
  watch->nodes = watch->point.on.resolve(graphs).size();
  if (watch->nodes == 0 && !watch->point.optional) value_or_throw(resolve_or_explain(watch->point.on, graphs));
}

// Another `when` turns it into an ordinary watchpoint.
void leave_rule(Watchpoint* point) {
  point->info.reset();
  point->script = nullptr;
  point->step_end = nullptr;
  point->finish = nullptr;
}

// What happens when the watchpoint stops the training.
void read_stop_options(lua_State* L, OptionTable& options, const SessionBox& session, WatchBox* watch) {
  const auto only_live = [&](const char* option) {
    if (session.live == nullptr)
      misuse(fmt::format("watch: option '{}': a {} does not stop; it is for a training", option, session_kind_name(session.kind)));
  };
  if (const auto once = options.boolean("once")) {
    if (*once) only_live("once");
    watch->once = *once;
  }
  if (const auto ignore = options.integer("ignore", 0, INT64_MAX)) {
    if (*ignore > 0) only_live("ignore");
    watch->ignore = *ignore;
  }
  if (const auto from_step = options.integer("from_step", 0, INT64_MAX)) {
    if (*from_step > 0) only_live("from_step");
    watch->from_step = *from_step;
  }
  options.with("commands", [&](int at) {
    only_live("commands");
    watch->commands = list_argument<std::string>(L, at, options.what("commands"));
  });
}

// Reads the table at `index` into `watch`; missing keys keep their values.
void read_watch(lua_State* L, int index, SessionBox& session, WatchBox* watch) {
  if (!lua_istable(L, index))
    misuse(fmt::format("watch: a table is expected: s:watch {{ on = \"@gradient\", when = \"TO\" }}, not {}",
                       value_text(L, index)));
  OptionTable options(L, index, "watch");
  options.with("on", [&](int at) { watch->point.on = selector_argument(L, at, options.what("on")); });
  if (const auto name = options.text("name")) watch->point.name = *name;
  options.with("slots", [&](int at) {
    watch->slots = lua_type(L, at) == LUA_TNUMBER ? fmt::format("output:{}", integer_argument(L, at, options.what("slots")))
                                                  : text_argument(L, at, options.what("slots"));
    set_slots(&watch->point, watch->slots);
  });
  if (const auto optional = options.boolean("optional")) watch->point.optional = *optional;
  if (const auto enabled = options.boolean("enabled")) watch->point.enabled = *enabled;
  if (const auto elements = options.boolean("elements")) watch->point.needs_elements = *elements;
  read_stop_options(L, options, session, watch);
  const bool has_when = options.push("when");
  if (has_when && lua_isfunction(L, -1)) {
    options.finish();
    watch->function = std::make_shared<FunctionRef>(*session.vm, L);
    leave_rule(&watch->point);
    watch->point.condition.reset();
    watch->point.expression.reset();
  } else if (has_when) {
    const std::string when =
        text_argument(L, lua_gettop(L), "watch: option 'when' (a condition, an expression or a function of a tensor)");
    lua_pop(L, 1);
    When read = read_when(when, options, L);
    leave_rule(&watch->point);
    watch->point.condition.reset();
    watch->point.expression.reset();
    if (Condition* condition = std::get_if<Condition>(&read)) watch->point.condition = std::move(*condition);
    else watch->point.expression = std::move(std::get<Expression>(read));
    watch->function.reset();
  } else if (watch->point.condition) {
    const Parameters parameters = read_parameters(options, *watch->point.condition->spec, L);
    options.finish();
    if (!parameters.empty()) watch->point.condition = with_parameters(*watch->point.condition, parameters);
  } else {
    options.finish();
  }
  if (watch->point.info) return;  // a rule keeps its name
  if (watch->point.condition) {
    watch->point.rule = watch->point.condition->spec->id;
    watch->point.severity = watch->point.condition->spec->severity;
  } else if (watch->point.expression) {
    watch->point.rule = watch->point.name.empty() ? watch->point.expression->text() : watch->point.name;
  } else {
    watch->point.rule = watch->point.name.empty() ? fmt::format("watch {}", watch->point.id) : watch->point.name;
  }
}

int add_watch(lua_State* L) {
  SessionBox& session = self<SessionBox>(L);
  session.open();
  auto watch = std::make_shared<WatchBox>();
  watch->session = session.shared_from_this();
  watch->point.id = session.next_watch_id;
  set_slots(&watch->point, watch->slots);
  read_watch(L, 2, session, watch.get());
  if (watch->point.on.text().empty()) misuse("watch: option 'on' is missing: say which nodes, e.g. on = \"@gradient\"");
  if (!watch->point.condition && !watch->point.expression && !watch->function) {
    misuse("watch: option 'when' is missing: a condition like \"TO\", an expression like \"mean(abs(x)) > 10\", or a function of a tensor");
  }
  resolve_watch(session, watch.get());
  ++session.next_watch_id;
  session.watches_changed = true;
  session.watches.push_back(watch);
  push_object(L, std::move(watch));
  return 1;
}

// core.watch_rule(session, instance) -> watchpoint; the instance comes from scripts/msdbg/rule_run.lua
int watch_rule(lua_State* L) {
  const auto session = object_argument<SessionBox>(L, 1, "watch: session");
  session->open();
  auto watch = std::make_shared<WatchBox>();
  watch->session = session;
  watch->point = rule_watchpoint(L, 2, *session, session->next_watch_id);
  watch->slots = text_field(L, 2, "slots");
  push_raw(L, 2, "check");
  if (lua_isfunction(L, -1) && !watch->point.condition && !watch->point.expression)
    watch->function = std::make_shared<FunctionRef>(*session->vm, L);
  resolve_watch(*session, watch.get());
  ++session->next_watch_id;
  session->watches_changed = true;
  session->watches.push_back(watch);
  push_object(L, std::move(watch));
  return 1;
}

int list_watches(lua_State* L) {
  SessionBox& session = self<SessionBox>(L);
  session.open();
  push_list(L, session.watches, [L](const auto& watch) { push_object(L, watch); });
  set_result_class(L, "watches");
  return 1;
}

// ---- the object ----------------------------------------------------------------------------------------------------

int get_id(lua_State* L) { return give(L, self<WatchBox>(L).point.id); }
int get_on(lua_State* L) { return give(L, self<WatchBox>(L).point.on.text()); }
int get_slots(lua_State* L) { return give(L, self<WatchBox>(L).slots); }
int get_enabled(lua_State* L) { return give(L, self<WatchBox>(L).point.enabled); }
int get_rule(lua_State* L) { return give(L, self<WatchBox>(L).point.rule); }
int get_nodes(lua_State* L) { return give(L, self<WatchBox>(L).nodes); }

int get_watch_name(lua_State* L) { return give(L, text_or_nil(self<WatchBox>(L).point.name)); }

int get_when(lua_State* L) {
  const WatchBox& watch = self<WatchBox>(L);
  if (watch.function) return watch.function->push(L), 1;
  if (watch.point.expression) return give(L, watch.point.expression->text());
  return give(L, watch.point.condition ? watch.point.condition->text() : std::string());
}

int get_params(lua_State* L) {
  const WatchBox& watch = self<WatchBox>(L);
  lua_newtable(L);
  if (watch.point.condition) {
    for (const auto& [name, value] : watch.point.condition->params) set_field(L, name.c_str(), value);
  }
  return 1;
}

int set_watch(lua_State* L) {
  WatchBox& watch = self<WatchBox>(L);
  const auto session = session_of(watch);
  WatchBox changed = watch;  // an error leaves the watchpoint unchanged
  read_watch(L, 2, *session, &changed);
  resolve_watch(*session, &changed);
  watch = changed;
  session->watches_changed = true;
  lua_settop(L, 1);
  return 1;
}

int set_enabled(lua_State* L, bool enabled) {
  WatchBox& watch = self<WatchBox>(L);
  session_of(watch)->watches_changed = true;
  watch.point.enabled = enabled;
  lua_settop(L, 1);
  return 1;
}
int enable(lua_State* L) { return set_enabled(L, true); }
int disable(lua_State* L) { return set_enabled(L, false); }

int remove_watch(lua_State* L) {
  WatchBox& watch = self<WatchBox>(L);
  if (watch.removed) return 0;
  const auto session = session_of(watch);
  watch.removed = true;
  session->watches_changed = true;
  std::erase_if(session->watches, [&](const auto& other) { return other.get() == &watch; });
  return 0;
}

int get_once(lua_State* L) { return give(L, self<WatchBox>(L).once); }
int get_ignores(lua_State* L) { return give(L, self<WatchBox>(L).ignore); }
int get_from_step(lua_State* L) { return give(L, self<WatchBox>(L).from_step); }
int get_commands(lua_State* L) {
  push_list(L, self<WatchBox>(L).commands, [L](const std::string& command) { push(L, command); });
  return 1;
}

// watch:ignore(n): ignores the next n stops
int ignore_hits(lua_State* L) {
  WatchBox& watch = self<WatchBox>(L);
  if (session_of(watch)->live == nullptr) misuse("ignore: a dump does not stop; this is for a training");
  const int64_t count = integer_argument(L, 2, "ignore: number of hits");
  if (count < 0) misuse(fmt::format("ignore: number of hits: 0 or more is expected, not {}", count));
  watch.ignore = count;
  lua_settop(L, 1);
  return 1;
}

// `watch 1: tensor_all_zero zero_percentage_ge 50 on @activation (4 nodes)`
int watch_text(lua_State* L) {
  const WatchBox& watch = self<WatchBox>(L);
  std::string text = fmt::format("watch {}: ", watch.point.id);
  const std::string what = watch.point.condition    ? watch.point.condition->text()
                           : watch.point.expression ? watch.point.expression->text()
                           : watch.point.info       ? "rule " + watch.point.rule
                                                    : "a function";
  text += watch.point.name.empty() ? what : fmt::format("{} ({})", printable(watch.point.name), what);
  text += fmt::format(" on {}", printable(watch.point.on.text()));
  if (watch.slots != "output")
    text += fmt::format(", {}", watch.slots == "all"     ? "inputs and outputs"
                                : watch.slots == "input" ? "inputs"
                                                         : watch.slots);
  text += fmt::format(" ({} node{})", watch.nodes, watch.nodes == 1 ? "" : "s");
  if (watch.from_step > 0) text += fmt::format(", from step {} on", watch.from_step);
  if (watch.once) text += ", once";
  if (watch.ignore > 0) text += watch.ignore == 1 ? ", ignores the next hit" : fmt::format(", ignores the next {} hits", watch.ignore);
  if (watch.removed)
    text += ", removed";
  else if (!watch.point.enabled)
    text += ", disabled";
  return give(L, text);
}

constexpr Member kWatchMethods[] = {
    {"set", guard<set_watch>}, {"enable", guard<enable>}, {"disable", guard<disable>}, {"remove", guard<remove_watch>},
    {"ignore", guard<ignore_hits>}};
constexpr Member kWatchFields[] = {{"id", guard<get_id>},     {"name", guard<get_watch_name>},     {"on", guard<get_on>},
                              {"when", guard<get_when>}, {"slots", guard<get_slots>},   {"enabled", guard<get_enabled>},
                              {"rule", guard<get_rule>}, {"params", guard<get_params>}, {"nodes", guard<get_nodes>},
                              {"once", guard<get_once>}, {"ignores", guard<get_ignores>}, {"from_step", guard<get_from_step>},
                              {"commands", guard<get_commands>}};
constexpr Member kWatchMeta[] = {{"__tostring", guard<watch_text>}};

}  // namespace

void bind_watch(lua_State* L) {
  define_class<WatchBox>(L, {.methods = kWatchMethods, .fields = kWatchFields, .meta = kWatchMeta});
  add_methods<SessionBox>(L, {{"watch", guard<add_watch>}, {"watches", guard<list_watches>}});
  bind_conditions(L);
  add_functions(L, {{"watch_rule", guard<watch_rule>}});
}

}  // namespace msdbg::script
