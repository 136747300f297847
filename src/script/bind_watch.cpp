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

void set_slots(Watchpoint* point, const std::string& slots) {
  point->slot.reset();
  point->inputs = slots == "input" || slots == "all";
  point->outputs = slots == "output" || slots == "all";
  if (point->inputs || point->outputs) return;
  const auto slot = parse_slot(slots);
  if (!slot)
    misuse(fmt::format("watch: option 'slots': 'output', 'input', 'all' or a slot like 'input:1' is expected, not '{}'",
                       slots));
  point->inputs = slot->io == Io::kInput;
  point->outputs = !point->inputs;
  point->slot = slot->index;
}

namespace {

using Parameters = std::map<std::string, double, std::less<>>;

// What the condition's parameters are called; hidden ones included, since scripts may set them.
std::vector<std::string> parameter_names(const ConditionSpec& spec) {
  std::vector<std::string> out;
  for (const ParamSpec& param : spec.params) out.emplace_back(param.name);
  return out;
}

// Takes the keys that are parameters of `spec`.
Parameters read_parameters(OptionTable& options, const ConditionSpec& spec, lua_State* L) {
  Parameters out;
  for (const std::string& name : parameter_names(spec)) {
    if (!options.push(name.c_str())) continue;
    if (lua_isboolean(L, -1))
      out[name] = lua_toboolean(L, -1);
    else if (const auto number = number_at(L, -1))
      out[name] = *number;
    else
      misuse(
          fmt::format("watch: parameter '{}' of {}: a number is expected, not {}", name, spec.id, value_text(L, -1)));
    lua_pop(L, 1);
  }
  return out;
}

Condition with_parameters(const Condition& base, const Parameters& extra) {
  Parameters all = base.params;
  for (const auto& [name, value] : extra) all[name] = value;
  return value_or_throw(make_condition(base.spec->id, all));
}

// What `when` says as text. A lone id leaves the parameters to the table, so that no default gets in their way.
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

// Another `when` makes it a watchpoint like any other.
void leave_rule(Watchpoint* point) {
  point->info.reset();
  point->script = nullptr;
  point->step_end = nullptr;
  point->finish = nullptr;
}

// Reads the table at `index` into `watch`; keys that are absent keep what is there.
void read_watch(lua_State* L, int index, SessionBox& session, WatchBox* watch) {
  if (!lua_istable(L, index))
    misuse(fmt::format("watch: a table is expected: s:watch {{ on = \"@gradient\", when = \"TO\" }}, not {}",
                       value_text(L, index)));
  OptionTable options(L, index, "watch");
  if (options.push("on")) {
    watch->point.on = selector_argument(L, lua_gettop(L), "watch: option 'on'");
    lua_pop(L, 1);
  }
  if (const auto name = options.text("name")) watch->point.name = *name;
  if (options.push("slots")) {
    watch->slots = lua_type(L, -1) == LUA_TNUMBER
                       ? fmt::format("output:{}", integer_argument(L, lua_gettop(L), "watch: option 'slots'"))
                       : text_argument(L, lua_gettop(L), "watch: option 'slots'");
    lua_pop(L, 1);
    set_slots(&watch->point, watch->slots);
  }
  if (const auto optional = options.boolean("optional")) watch->point.optional = *optional;
  if (const auto enabled = options.boolean("enabled")) watch->point.enabled = *enabled;
  if (const auto elements = options.boolean("elements")) watch->point.needs_elements = *elements;
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

// core.watch_rule(session, instance) -> watchpoint; the instance is one of scripts/msdbg/rule_run.lua
int watch_rule(lua_State* L) {
  const auto session = object_argument<SessionBox>(L, 1, "watch: session");
  session->open();
  auto watch = std::make_shared<WatchBox>();
  watch->session = session;
  watch->point = rule_watchpoint(L, 2, *session, session->next_watch_id);
  lua_getfield(L, 2, "slots");
  watch->slots = text_at(L, -1).value_or("output");
  lua_getfield(L, 2, "check");
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
  lua_createtable(L, static_cast<int>(session.watches.size()), 0);
  for (size_t i = 0; i < session.watches.size(); ++i) {
    push_object(L, session.watches[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  set_record_class(L, "watches");
  return 1;
}

// ---- the object
// --------------------------------------------------------------------------------------------------------

int get_id(lua_State* L) { return lua_pushinteger(L, self<WatchBox>(L).point.id), 1; }
int get_on(lua_State* L) { return push_text(L, self<WatchBox>(L).point.on.text()), 1; }
int get_slots(lua_State* L) { return push_text(L, self<WatchBox>(L).slots), 1; }
int get_enabled(lua_State* L) { return lua_pushboolean(L, self<WatchBox>(L).point.enabled), 1; }
int get_rule(lua_State* L) { return push_text(L, self<WatchBox>(L).point.rule), 1; }
int get_nodes(lua_State* L) { return lua_pushnumber(L, static_cast<double>(self<WatchBox>(L).nodes)), 1; }

int get_name(lua_State* L) {
  const WatchBox& watch = self<WatchBox>(L);
  if (watch.point.name.empty())
    lua_pushnil(L);
  else
    push_text(L, watch.point.name);
  return 1;
}

int get_when(lua_State* L) {
  const WatchBox& watch = self<WatchBox>(L);
  if (watch.function)
    watch.function->push(L);
  else
    push_text(L, watch.point.expression ? watch.point.expression->text() : watch.point.condition->text());
  return 1;
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
  WatchBox changed = watch;  // an error leaves the watchpoint as it was
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
  if (watch.removed)
    text += ", removed";
  else if (!watch.point.enabled)
    text += ", disabled";
  push_text(L, text);
  return 1;
}

constexpr Member kMethods[] = {
    {"set", guard<set_watch>}, {"enable", guard<enable>}, {"disable", guard<disable>}, {"remove", guard<remove_watch>}};
constexpr Member kFields[] = {{"id", guard<get_id>},     {"name", guard<get_name>},     {"on", guard<get_on>},
                              {"when", guard<get_when>}, {"slots", guard<get_slots>},   {"enabled", guard<get_enabled>},
                              {"rule", guard<get_rule>}, {"params", guard<get_params>}, {"nodes", guard<get_nodes>}};
constexpr Member kMeta[] = {{"__tostring", guard<watch_text>}};

}  // namespace

void bind_watch(lua_State* L) {
  define_class(L, {ClassName<WatchBox>::value, kMethods, kFields, kMeta, {}, nullptr}, guard<collect_object<WatchBox>>,
               guard<equal_objects<WatchBox>>);
  luaL_getmetatable(L, ClassName<SessionBox>::registry);
  lua_getfield(L, -1, "methods");
  for (const Member& member : {Member{"watch", guard<add_watch>}, Member{"watches", guard<list_watches>}}) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
  lua_pop(L, 2);
  bind_conditions(L);
  lua_pushcfunction(L, guard<watch_rule>);
  lua_setfield(L, -2, "watch_rule");
}

}  // namespace msdbg::script
