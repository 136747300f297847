// Node sets, and the selectors that make them.
#include <fmt/format.h>

#include <set>

#include "script/objects.h"

namespace msdbg::script {
namespace {

void push_set(lua_State* L, std::shared_ptr<SessionBox> session, std::vector<NodeBox> nodes, std::string text) {
  auto set = std::make_shared<NodeSetBox>();
  set->session = std::move(session);
  set->nodes = std::move(nodes);
  set->text = std::move(text);
  push_object(L, std::move(set));
}

// Upvalues: the set, the position.
int next_node(lua_State* L) {
  const auto set = object_argument<NodeSetBox>(L, lua_upvalueindex(1), "each");
  const auto at = static_cast<size_t>(lua_tointeger(L, lua_upvalueindex(2)));
  if (at >= set->nodes.size()) return 0;
  lua_pushinteger(L, static_cast<lua_Integer>(at + 1));
  lua_replace(L, lua_upvalueindex(2));
  push_object(L, std::make_shared<NodeBox>(set->nodes[at]));
  return 1;
}

int set_each(lua_State* L) {
  self<NodeSetBox>(L);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, guard<next_node>, 2);
  return 1;
}

int set_length(lua_State* L) { return lua_pushnumber(L, static_cast<double>(self<NodeSetBox>(L).nodes.size())), 1; }

int set_at(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  const auto i = integer_at(L, 2);
  if (!i || *i < 1 || static_cast<size_t>(*i) > set.nodes.size())
    lua_pushnil(L);
  else
    push_object(L, std::make_shared<NodeBox>(set.nodes[static_cast<size_t>(*i - 1)]));
  return 1;
}

// Calls the function at 2 with a node; one result is left.  [-0, +1, -]
void call_for(lua_State* L, const NodeBox& node) {
  lua_pushvalue(L, 2);
  push_object(L, std::make_shared<NodeBox>(node));
  if (!protected_call(L, 1, 1)) throw PendingError();
}

void check_function(lua_State* L, std::string_view call) {
  if (!lua_isfunction(L, 2))
    misuse(fmt::format("{}: a function of a node is expected, not {}", call, value_text(L, 2)));
}

int set_filter(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  check_function(L, "filter");
  std::vector<NodeBox> kept;
  for (const NodeBox& node : set.nodes) {
    call_for(L, node);
    if (lua_toboolean(L, -1)) kept.push_back(node);
    lua_pop(L, 1);
  }
  push_set(L, set.session, std::move(kept), set.text + ", filtered");
  return 1;
}

int set_map(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  check_function(L, "map");
  lua_settop(L, 2);
  lua_newtable(L);
  int i = 0;
  for (const NodeBox& node : set.nodes) {
    call_for(L, node);
    if (lua_isnil(L, -1))
      lua_pop(L, 1);
    else
      lua_rawseti(L, 3, ++i);
  }
  return 1;
}

int set_union(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  const auto other = object_argument<NodeSetBox>(L, 2, "union");
  std::vector<NodeBox> all = set.nodes;
  std::set<std::pair<const Graph*, NodeId>> known;
  for (const NodeBox& node : all) known.insert({node.graph.get(), node.id});
  for (const NodeBox& node : other->nodes) {
    if (known.insert({node.graph.get(), node.id}).second) all.push_back(node);
  }
  push_set(L, set.session, std::move(all), fmt::format("{} or {}", set.text, other->text));
  return 1;
}

int set_first(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  const int64_t n = lua_isnoneornil(L, 2) ? 1 : integer_argument(L, 2, "first: count");
  if (n < 0) misuse(fmt::format("first: count: 0 or more is expected, not {}", n));
  const size_t count = std::min(set.nodes.size(), static_cast<size_t>(n));
  push_set(L, set.session, {set.nodes.begin(), set.nodes.begin() + static_cast<ptrdiff_t>(count)}, set.text);
  return 1;
}

int set_names(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  lua_createtable(L, static_cast<int>(set.nodes.size()), 0);
  for (size_t i = 0; i < set.nodes.size(); ++i) {
    push_text(L, set.nodes[i].node().name);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int set_text(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  if (!set.session->session || set.nodes.empty()) {
    push_text(
        L, fmt::format("<{} node{} of {}>", set.nodes.size(), set.nodes.size() == 1 ? "" : "s", printable(set.text)));
    return 1;
  }
  std::vector<NodeRef> refs;
  for (const NodeBox& node : set.nodes) refs.push_back({node.graph.get(), node.id});
  std::string text = nodes_report(*set.session->session, refs, table_style());
  while (text.ends_with('\n')) text.pop_back();
  push_text(L, text);
  return 1;
}
int session_nodes(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  Session& session = box.open();
  const Selector selector =
      lua_isnoneornil(L, 2) ? value_or_throw(Selector::parse("@all")) : selector_argument(L, 2, "nodes");
  OptionTable options(L, 3, "nodes");
  const bool optional = options.boolean("optional").value_or(false);
  options.finish();
  const auto refs = optional ? selector.resolve(session.graphs())
                             : value_or_throw(resolve_or_explain(selector, session.graphs()));
  std::vector<NodeBox> nodes;
  nodes.reserve(refs.size());
  const auto shared = box.shared_from_this();
  for (const NodeRef& ref : refs) nodes.push_back({shared, graph_pointer(box, ref.graph), ref.node});
  push_set(L, shared, std::move(nodes), selector.text());
  return 1;
}

constexpr Member kSetMethods[] = {{"each", guard<set_each>},   {"filter", guard<set_filter>},
                                  {"map", guard<set_map>},     {"union", guard<set_union>},
                                  {"first", guard<set_first>}, {"names", guard<set_names>}};
constexpr Member kSetMeta[] = {{"__tostring", guard<set_text>}, {"__len", guard<set_length>}};

Selector selector_of(lua_State* L, int index, const std::string& what) {
  if (const NodeBox* node = object_at<NodeBox>(L, index))
    return value_or_throw(Selector::parse("=" + node->node().name));
  if (const NodeSetBox* set = object_at<NodeSetBox>(L, index)) {
    std::vector<Selector> parts;
    for (const NodeBox& node : set->nodes) parts.push_back(value_or_throw(Selector::parse("=" + node.node().name)));
    if (parts.empty()) misuse(what + ": the node set is empty");
    return Selector::any_of(parts);
  }
  const auto text = text_at(L, index);
  if (!text)
    misuse(fmt::format("{}: a selector, a node, a node set or a list of these is expected, not {}", what,
                       value_text(L, index)));
  return value_or_throw(Selector::parse(*text));
}

}  // namespace

Selector selector_argument(lua_State* L, int index, std::string_view what) {
  if (!lua_istable(L, index)) return selector_of(L, index, std::string(what));
  std::vector<Selector> parts;
  for (int i = 1;; ++i) {
    lua_rawgeti(L, index, i);
    const bool end = lua_isnil(L, -1);
    if (!end) parts.push_back(selector_of(L, lua_gettop(L), fmt::format("{}: element {}", what, i)));
    lua_pop(L, 1);
    if (end) break;
  }
  if (parts.empty()) misuse(fmt::format("{}: the list of selectors is empty", what));
  return Selector::any_of(parts);
}

void bind_node_set(lua_State* L) {
  define_class(L, {ClassName<NodeSetBox>::value, kSetMethods, {}, kSetMeta, {}, guard<set_at>},
               guard<collect_object<NodeSetBox>>, guard<equal_objects<NodeSetBox>>);
  add_session_methods(L, {{"nodes", guard<session_nodes>}});
}

}  // namespace msdbg::script
