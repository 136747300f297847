// Nodes and node sets.
#include <fmt/format.h>

#include <algorithm>

#include "script/objects.h"

namespace msdbg::script {
namespace {

// ---- node
// ------------------------------------------------------------------------------------------------------------

NodeBox& checked_node(lua_State* L) {
  NodeBox& box = self<NodeBox>(L);
  box.session->open();
  return box;
}

int get_name(lua_State* L) { return push_text(L, self<NodeBox>(L).node().name), 1; }
int get_op(lua_State* L) { return push_text(L, self<NodeBox>(L).node().op), 1; }
int get_kind(lua_State* L) { return push_text(L, node_kind_name(self<NodeBox>(L).node().kind)), 1; }
int get_scope(lua_State* L) { return push_text(L, self<NodeBox>(L).node().scope), 1; }
int get_rank(lua_State* L) { return lua_pushinteger(L, self<NodeBox>(L).graph->rank()), 1; }
int get_graph(lua_State* L) { return push_text(L, self<NodeBox>(L).graph->name()), 1; }
int get_graph_id(lua_State* L) { return lua_pushinteger(L, self<NodeBox>(L).graph->id()), 1; }
int get_stack(lua_State* L) { return push_stack(L, self<NodeBox>(L).node().stack), 1; }

int get_trainable(lua_State* L) { return lua_pushboolean(L, self<NodeBox>(L).node().trainable), 1; }

int get_attributes(lua_State* L) {
  const Node& node = self<NodeBox>(L).node();
  lua_createtable(L, 0, static_cast<int>(node.attributes.size()));
  for (const Attribute& attribute : node.attributes) set_field(L, attribute.name.c_str(), attribute.value);
  return 1;
}

int get_inputs(lua_State* L) {
  const NodeBox& box = checked_node(L);
  const Node& node = box.node();
  lua_createtable(L, static_cast<int>(node.inputs.size()), 0);
  for (uint32_t i = 0; i < node.inputs.size(); ++i) {
    const Edge edge = box.graph->effective_producer(box.id, i);
    lua_newtable(L);
    if (edge.node != kNoNode) {
      push_node(L, box.session, box.graph, edge.node);
      lua_setfield(L, -2, "node");
      set_field(L, "slot", slot_name({Io::kOutput, edge.slot}));
    }
    set_field(L, "name", edge.node != kNoNode ? box.graph->node(edge.node).name : node.inputs[i].name);
    set_record_class(L, "edge");
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int get_outputs(lua_State* L) {
  const Node& node = self<NodeBox>(L).node();
  lua_createtable(L, static_cast<int>(node.outputs.size()), 0);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    lua_newtable(L);
    set_field(L, "dtype", dtype_name(node.outputs[i].dtype));
    if (node.outputs[i].shape) {
      push_shape(L, *node.outputs[i].shape);
      lua_setfield(L, -2, "shape");
    }
    set_record_class(L, "output");
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int get_users(lua_State* L) {
  const NodeBox& box = checked_node(L);
  lua_newtable(L);
  int i = 0;
  for (const Use& use : box.graph->effective_users(box.id)) {
    lua_newtable(L);
    push_node(L, box.session, box.graph, use.node);
    lua_setfield(L, -2, "node");
    set_field(L, "slot", slot_name({Io::kInput, use.slot}));
    set_field(L, "output", slot_name({Io::kOutput, use.output_slot}));
    set_field(L, "name", box.graph->node(use.node).name);
    set_record_class(L, "edge");
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

int read_slot(lua_State* L, NodeBox& box, Slot slot, int options_index, std::string_view call) {
  OptionTable options(L, options_index, call);
  TensorId id;
  id.rank = box.graph->rank();
  id.graph = box.graph->id();
  id.node = box.id;
  id.slot = slot;
  id.step = step_option(options, *box.session);
  id.execution = static_cast<uint32_t>(std::max<int64_t>(options.integer("execution").value_or(0), 0));
  options.finish();
  return push_tensor(L, box.session, id);
}

int node_value(lua_State* L) {
  NodeBox& box = checked_node(L);
  if (box.node().kind == NodeKind::kOperator) {
    misuse(fmt::format("value: {} is an operator; only parameters and constants have a value. Use node:output(0)",
                       box.node().name));
  }
  return read_slot(L, box, {Io::kOutput, 0}, 2, "value");
}

int slot_method(lua_State* L, Io io, const char* call) {
  NodeBox& box = checked_node(L);
  const int64_t index = lua_isnoneornil(L, 2) ? 0 : integer_argument(L, 2, fmt::format("{}: slot", call));
  const size_t have = io == Io::kInput ? box.node().inputs.size() : box.node().outputs.size();
  // Without a graph file the slots are known only from what was dumped.
  const bool known = box.graph->from_file() && have > 0;
  if (index < 0 || (known && static_cast<size_t>(index) >= have)) {
    misuse(fmt::format("{}: {} has no {}:{} (it has {})", call, box.node().name, call, index, have));
  }
  return read_slot(L, box, {io, static_cast<uint32_t>(index)}, 3, call);
}
int node_output(lua_State* L) { return slot_method(L, Io::kOutput, "output"); }
int node_input(lua_State* L) { return slot_method(L, Io::kInput, "input"); }

int node_text(lua_State* L) {
  const NodeBox& box = self<NodeBox>(L);
  push_text(L, fmt::format("<{} {} {}>", node_kind_name(box.node().kind), printable(box.node().name),
                           printable(box.node().op)));
  return 1;
}

int equal_nodes(lua_State* L) {
  const NodeBox* a = object_at<NodeBox>(L, 1);
  const NodeBox* b = object_at<NodeBox>(L, 2);
  lua_pushboolean(L, a != nullptr && b != nullptr && *a == *b);
  return 1;
}

// ---- node set
// --------------------------------------------------------------------------------------------------------

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
  for (const NodeBox& node : other->nodes) {
    if (std::find(all.begin(), all.end(), node) == all.end()) all.push_back(node);
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
  std::string text = nodes_report(*set.session->session, refs, {});
  while (text.ends_with('\n')) text.pop_back();
  push_text(L, text);
  return 1;
}

// ---- session methods
// -------------------------------------------------------------------------------------------------

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

int session_node(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  const std::string name = text_argument(L, 2, "node: name");
  OptionTable options(L, 3, "node");
  std::optional<int> rank, graph;
  if (const auto value = options.integer("rank")) rank = static_cast<int>(*value);
  if (const auto value = options.integer("graph")) graph = static_cast<int>(*value);
  options.finish();
  const NodeRef ref = value_or_throw(find_node(box.open().graphs(), name, rank, graph));
  push_node(L, box.shared_from_this(), graph_pointer(box, ref.graph), ref.node);
  return 1;
}

constexpr Member kNodeMethods[] = {
    {"value", guard<node_value>}, {"output", guard<node_output>}, {"input", guard<node_input>}};
constexpr Member kNodeFields[] = {
    {"name", guard<get_name>},          {"op", guard<get_op>},         {"kind", guard<get_kind>},
    {"scope", guard<get_scope>},        {"rank", guard<get_rank>},     {"graph", guard<get_graph>},
    {"graph_id", guard<get_graph_id>},  {"inputs", guard<get_inputs>}, {"outputs", guard<get_outputs>},
    {"users", guard<get_users>},        {"stack", guard<get_stack>},   {"attrs", guard<get_attributes>},
    {"trainable", guard<get_trainable>}};
constexpr Member kNodeMeta[] = {{"__tostring", guard<node_text>}};
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

GraphPtr graph_pointer(SessionBox& session, const Graph* graph) {
  for (const GraphPtr& candidate : session.open().graphs()) {
    if (candidate.get() == graph) return candidate;
  }
  throw ScriptError("internal", "a node of a graph that the session does not hold");
}

void push_node(lua_State* L, const std::shared_ptr<SessionBox>& session, GraphPtr graph, NodeId id) {
  push_object(L, std::make_shared<NodeBox>(NodeBox{session, std::move(graph), id}));
}

void push_stack(lua_State* L, const std::vector<StackFrame>& stack) {
  lua_createtable(L, static_cast<int>(stack.size()), 0);
  for (size_t i = 0; i < stack.size(); ++i) {
    lua_createtable(L, 0, 3);
    set_field(L, "file", stack[i].file);
    set_field(L, "line", stack[i].line);
    set_field(L, "code", stack[i].code);
    set_record_class(L, "frame");
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
}

void bind_node(lua_State* L) {
  define_class(L, {ClassName<NodeBox>::value, kNodeMethods, kNodeFields, kNodeMeta, {}, nullptr},
               guard<collect_object<NodeBox>>, guard<equal_nodes>);
  define_class(L, {ClassName<NodeSetBox>::value, kSetMethods, {}, kSetMeta, {}, guard<set_at>},
               guard<collect_object<NodeSetBox>>, guard<equal_objects<NodeSetBox>>);
  luaL_getmetatable(L, ClassName<SessionBox>::registry);
  lua_getfield(L, -1, "methods");
  for (const Member& member : {Member{"nodes", guard<session_nodes>}, Member{"node", guard<session_node>}}) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
  lua_pop(L, 2);
}

}  // namespace msdbg::script
