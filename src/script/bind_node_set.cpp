// Node sets, and the selectors that create them.
#include <fmt/format.h>

#include <set>

#include "script/objects.h"

namespace msdbg::script {

void NodeList::add(const NodeBox& node) {
  const auto owns = [&](const Owner& owner) { return owner.graph == node.graph && owner.session == node.session; };
  size_t at = items_.empty() ? 0 : items_.back().owner;
  if (at >= owners_.size() || !owns(owners_[at])) {
    at = static_cast<size_t>(std::find_if(owners_.begin(), owners_.end(), owns) - owners_.begin());
    if (at == owners_.size()) owners_.push_back({node.session, node.graph});
  }
  items_.push_back({static_cast<uint32_t>(at), node.id});
}

namespace {

void push_set(lua_State* L, std::shared_ptr<SessionBox> session, NodeList nodes, std::string text) {
  auto set = std::make_shared<NodeSetBox>();
  set->session = std::move(session);
  set->nodes = std::move(nodes);
  set->text = std::move(text);
  push_object(L, std::move(set));
}

// Upvalues: the set, the position.
int next_node(lua_State* L) {
  const auto set = object_argument<NodeSetBox>(L, lua_upvalueindex(1), "each");
  const auto at = static_cast<size_t>(integer_at(L, lua_upvalueindex(2)).value_or(0));
  if (at >= set->nodes.size()) return 0;
  push(L, at + 1);
  lua_replace(L, lua_upvalueindex(2));
  push_object(L, std::make_shared<NodeBox>(set->nodes[at]));
  return 1;
}

int set_each(lua_State* L) {
  self<NodeSetBox>(L);
  lua_pushvalue(L, 1);
  push(L, 0);
  lua_pushcclosure(L, guard<next_node>, 2);
  return 1;
}

int set_length(lua_State* L) { return give(L, self<NodeSetBox>(L).nodes.size()); }

int set_at(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  const auto i = integer_at(L, 2);
  if (!i || *i < 1 || static_cast<size_t>(*i) > set.nodes.size())
    lua_pushnil(L);
  else
    push_object(L, std::make_shared<NodeBox>(set.nodes[static_cast<size_t>(*i - 1)]));
  return 1;
}

// Calls the function at 2 with a node; leaves one result.  [-0, +1, -]
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
  NodeList kept;
  for (size_t at = 0; at < set.nodes.size(); ++at) {
    const NodeBox node = set.nodes[at];
    call_for(L, node);
    if (truth_at(L, -1)) kept.add(node);
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
  for (size_t at = 0; at < set.nodes.size(); ++at) {
    call_for(L, set.nodes[at]);
    if (lua_isnil(L, -1))
      lua_pop(L, 1);
    else
      lua_rawseti(L, 3, ++i);
  }
  return 1;
}

std::set<NodeRef> refs_of(const NodeSetBox& set) {
  std::set<NodeRef> refs;
  for (size_t at = 0; at < set.nodes.size(); ++at) refs.insert(set.nodes.ref(at));
  return refs;
}

int set_union(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  const auto other = object_argument<NodeSetBox>(L, 2, "union");
  NodeList all = set.nodes;
  std::set<NodeRef> known = refs_of(set);
  for (size_t at = 0; at < other->nodes.size(); ++at) {
    if (known.insert(other->nodes.ref(at)).second) all.add(other->nodes[at]);
  }
  push_set(L, set.session, std::move(all), fmt::format("{} or {}", set.text, other->text));
  return 1;
}

int set_minus(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  const auto other = object_argument<NodeSetBox>(L, 2, "minus");
  const std::set<NodeRef> left_out = refs_of(*other);
  NodeList kept;
  for (size_t at = 0; at < set.nodes.size(); ++at) {
    if (!left_out.contains(set.nodes.ref(at))) kept.add(set.nodes[at]);
  }
  push_set(L, set.session, std::move(kept), fmt::format("{} and not {}", set.text, other->text));
  return 1;
}

int set_first(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  const int64_t n = integer_argument(L, 2, "first: count", 1, 0, INT64_MAX);
  const size_t count = std::min(set.nodes.size(), static_cast<size_t>(n));
  NodeList first;
  for (size_t at = 0; at < count; ++at) first.add(set.nodes[at]);
  push_set(L, set.session, std::move(first), set.text);
  return 1;
}

int set_names(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  lua_createtable(L, static_cast<int>(set.nodes.size()), 0);
  for (size_t at = 0; at < set.nodes.size(); ++at) {
    const NodeRef node = set.nodes.ref(at);
    push(L, node.graph->node(node.node).name);
    lua_rawseti(L, -2, static_cast<int>(at) + 1);
  }
  return 1;
}

int set_text(lua_State* L) {
  const NodeSetBox& set = self<NodeSetBox>(L);
  if (!set.session->session || set.nodes.empty()) {
    push(
        L, fmt::format("<{} node{} of {}>", set.nodes.size(), set.nodes.size() == 1 ? "" : "s", printable(set.text)));
    return 1;
  }
  std::vector<NodeRef> refs;
  for (size_t at = 0; at < set.nodes.size(); ++at) refs.push_back(set.nodes.ref(at));
  return give(L, without_last_newline(nodes_report(*set.session->session, refs, table_style(L), true)));
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
  NodeList nodes;
  nodes.reserve(refs.size());
  const auto shared = box.shared_from_this();
  for (const NodeRef& ref : refs) nodes.add({shared, graph_pointer(box, ref.graph), ref.node});
  push_set(L, shared, std::move(nodes), selector.text());
  return 1;
}

constexpr Member kSetMethods[] = {{"each", guard<set_each>},   {"filter", guard<set_filter>},
                                  {"map", guard<set_map>},     {"union", guard<set_union>},
                                  {"minus", guard<set_minus>}, {"first", guard<set_first>},
                                  {"names", guard<set_names>}};
constexpr Member kSetMeta[] = {{"__tostring", guard<set_text>}, {"__len", guard<set_length>}};

// The contents of a selector argument: texts, and nodes with their rank and graph.
struct Selected {
  std::vector<Selector> texts;
  std::vector<NodeRef> nodes;
  std::vector<GraphPtr> graphs;  ///< of the sessions of the nodes
};

void add_graphs(const SessionBox& box, Selected* into) {
  if (!box.session || !into->graphs.empty()) return;
  const auto graphs = box.session->graphs();
  into->graphs.assign(graphs.begin(), graphs.end());
}

void add_nodes(const NodeList& nodes, Selected* into) {
  for (size_t at = 0; at < nodes.size(); ++at) into->nodes.push_back(nodes.ref(at));
  if (!nodes.empty()) add_graphs(*nodes.session(0), into);
}

void add_selected(lua_State* L, int index, std::string_view what, Selected* into) {
  if (const NodeBox* node = object_at<NodeBox>(L, index)) {
    into->nodes.push_back({node->graph.get(), node->id});
    return add_graphs(*node->session, into);
  }
  if (const NodeSetBox* set = object_at<NodeSetBox>(L, index)) {
    if (set->nodes.empty()) misuse(fmt::format("{}: the node set is empty", what));
    return add_nodes(set->nodes, into);
  }
  const auto text = text_at(L, index);
  if (!text) misuse(fmt::format("{}: a selector, a node, a node set or a list of these is expected, not {}", what, value_text(L, index)));
  into->texts.push_back(value_or_throw(Selector::parse(*text)));
}

}  // namespace

Selector selector_argument(lua_State* L, int index, std::string_view what) {
  Selected found;
  if (NodeSetBox* set = object_at<NodeSetBox>(L, index); set != nullptr && !set->nodes.empty()) {
    if (!set->selector) {
      add_nodes(set->nodes, &found);
      set->selector = Selector::of_nodes(found.nodes, found.graphs);
    }
    return *set->selector;
  }
  if (!lua_istable(L, index)) add_selected(L, index, what, &found);
  else for_each_element(L, index, what, [&](int i) { add_selected(L, lua_gettop(L), fmt::format("{}: element {}", what, i), &found); });
  if (!found.nodes.empty()) found.texts.push_back(Selector::of_nodes(found.nodes, found.graphs));
  if (found.texts.empty()) misuse(fmt::format("{}: the list of selectors is empty", what));
  return Selector::any_of(found.texts);
}

void bind_node_set(lua_State* L) {
  define_class<NodeSetBox>(L, {.methods = kSetMethods, .meta = kSetMeta, .index_number = guard<set_at>});
  add_methods<SessionBox>(L, {{"nodes", guard<session_nodes>}});
}

}  // namespace msdbg::script
