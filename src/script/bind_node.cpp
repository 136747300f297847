// Nodes.
#include <fmt/format.h>

#include <algorithm>

#include "msdbg/analysis.h"
#include "msdbg/gradients.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

NodeBox& checked_node(lua_State* L) {
  NodeBox& box = self<NodeBox>(L);
  box.session->open();
  if (!box.session->renumber(box.graph, box.id))
    throw ScriptError("not_found", fmt::format("{} is not in the graph any more", printable(box.node().name)), true);
  return box;
}

int get_name(lua_State* L) { return give(L, self<NodeBox>(L).node().name); }
int get_op(lua_State* L) { return give(L, self<NodeBox>(L).node().op); }
int get_kind(lua_State* L) { return give(L, node_kind_name(self<NodeBox>(L).node().kind)); }
int get_scope(lua_State* L) { return give(L, self<NodeBox>(L).node().scope); }
int get_rank(lua_State* L) { return give(L, self<NodeBox>(L).graph->rank()); }
int get_graph(lua_State* L) { return give(L, self<NodeBox>(L).graph->name()); }
int get_graph_id(lua_State* L) { return give(L, self<NodeBox>(L).graph->id()); }
int get_stack(lua_State* L) { return push_stack(L, self<NodeBox>(L).node().stack), 1; }

// For tables: each access to a node makes another object.
int get_key(lua_State* L) {
  const NodeBox& box = checked_node(L);
  const std::span<const GraphPtr> graphs = box.session->session->graphs();
  size_t& place = box.session->graph_at_hand;  // loops go from graph to graph
  if (place >= graphs.size() || graphs[place] != box.graph) place = static_cast<size_t>(std::ranges::find(graphs, box.graph) - graphs.begin());
  return give(L, static_cast<double>(place) * 0x1p32 + static_cast<double>(box.id));
}

int get_trainable(lua_State* L) { return give(L, self<NodeBox>(L).node().trainable); }

int get_constant(lua_State* L) {
  const std::string& text = self<NodeBox>(L).node().constant_value;
  if (text.empty()) return lua_pushnil(L), 1;
  return give(L, text);
}

int get_unwritten(lua_State* L) {
  const NodeBox& box = self<NodeBox>(L);
  return give(L, has_unwritten_outputs(box.session->open().info(), box.node()));
}

int get_attributes(lua_State* L) {
  const Node& node = self<NodeBox>(L).node();
  lua_createtable(L, 0, static_cast<int>(node.attributes.size()));
  for (const Attribute& attribute : node.attributes) set_field(L, attribute.name->c_str(), attribute.value);
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
    set_field(L, "name", edge.node != kNoNode ? box.graph->node(edge.node).name : edge.name.get());
    set_result_class(L, "edge");
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int get_outputs(lua_State* L) {
  const Node& node = self<NodeBox>(L).node();
  push_list(L, node.outputs, [L](const auto& output) {
    lua_newtable(L);
    set_field(L, "dtype", dtype_name(output.dtype));
    if (output.shape) {
      push_shape(L, *output.shape);
      lua_setfield(L, -2, "shape");
    }
    set_result_class(L, "output");
  });
  return 1;
}

int get_users(lua_State* L) {
  const NodeBox& box = checked_node(L);
  push_list(L, box.graph->effective_users(box.id), [&](const Use& use) {
    lua_newtable(L);
    push_node(L, box.session, box.graph, use.node);
    lua_setfield(L, -2, "node");
    set_field(L, "slot", slot_name({Io::kInput, use.slot}));
    set_field(L, "output", slot_name({Io::kOutput, use.output_slot}));
    set_field(L, "name", box.graph->node(use.node).name);
    set_result_class(L, "edge");
  });
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
  id.execution = static_cast<uint32_t>(options.integer("execution", 0, UINT32_MAX).value_or(0));
  options.finish();
  return push_tensor(L, box.session, id);
}

int node_value(lua_State* L) {
  NodeBox& box = checked_node(L);
  if (box.node().kind == NodeKind::kOperator) {
    misuse(fmt::format("value: {} is an operator; only parameters and constants have a value. Use node:output(0)",
                       printable(box.node().name)));
  }
  return read_slot(L, box, {Io::kOutput, 0}, 2, "value");
}

int slot_method(lua_State* L, Io io, const char* call) {
  NodeBox& box = checked_node(L);
  const int64_t index = integer_argument(L, 2, fmt::format("{}: slot", call), 0, 0, UINT32_MAX);
  const size_t have = io == Io::kInput ? box.node().inputs.size() : box.node().outputs.size();
  // Without a graph file, only the dumped slots are known.
  const bool known = box.graph->from_file() && have > 0;
  if (known && static_cast<size_t>(index) >= have) {
    misuse(fmt::format("{}: {} has no {}:{} (it has {})", call, printable(box.node().name), call, index, have));
  }
  return read_slot(L, box, {io, static_cast<uint32_t>(index)}, 3, call);
}
int node_output(lua_State* L) { return slot_method(L, Io::kOutput, "output"); }
int node_input(lua_State* L) { return slot_method(L, Io::kInput, "input"); }

// node:arguments { step = } -> the arguments of a recorded call, by name; empty for others
int node_arguments(lua_State* L) {
  const NodeBox& box = checked_node(L);
  OptionTable options(L, 2, "arguments");
  TensorId id;
  id.rank = box.graph->rank();
  id.graph = box.graph->id();
  id.step = step_option(options, *box.session);
  id.node = box.id;
  options.finish();
  lua_newtable(L);
  for (const Attribute& argument : box.session->open().arguments(id)) {
    push(L, argument.value.get());
    lua_setfield(L, -2, argument.name.get().c_str());
  }
  return 1;
}

// node:gradient() -> the node whose value the optimizer takes as gradient, its slot
int node_gradient(lua_State* L) {
  const NodeBox& box = checked_node(L);
  const std::optional<GradientOf> found = gradient_of(*box.graph, box.id);
  if (!found) return lua_pushnil(L), 1;
  // Where another graph computes it, the optimizer's input is all that this one shows.
  const bool computed = found->producer.node != kNoNode && box.graph->node(found->producer.node).kind == NodeKind::kOperator;
  if (!computed && found->optimizer == kNoNode) return lua_pushnil(L), 1;
  push_node(L, box.session, box.graph, computed ? found->producer.node : found->optimizer);
  push(L, slot_name(computed ? Slot{Io::kOutput, found->producer.slot} : Slot{Io::kInput, found->slot}));
  return 2;
}

// node:first_use() -> the first operator of the forward pass that takes an output of this node, and its place in the execution order
int node_first_use(lua_State* L) {
  const NodeBox& box = checked_node(L);
  const Graph& graph = *box.graph;
  std::optional<NodeId> first;
  for (const Use& use : graph.effective_users(box.id)) {
    const bool forward = graph.node(use.node).kind == NodeKind::kOperator && !graph.in(use.node, Category::kGradient) &&
                         !graph.in(use.node, Category::kOptimizer);
    if (forward && (!first || graph.node(use.node).order < graph.node(*first).order)) first = use.node;
  }
  if (!first) return lua_pushnil(L), 1;
  push_node(L, box.session, box.graph, *first);
  push(L, graph.node(*first).order);
  return 2;
}

// node:parameter(slot) -> the parameter that is updated with this output
int node_parameter(lua_State* L) {
  const NodeBox& box = checked_node(L);
  const int64_t slot = integer_argument(L, 2, "parameter: slot", 0, 0, UINT32_MAX);
  const std::optional<NodeId> found = parameter_of_gradient(*box.graph, box.id, static_cast<uint32_t>(slot));
  if (!found) return lua_pushnil(L), 1;
  push_node(L, box.session, box.graph, *found);
  return 1;
}

int node_text(lua_State* L) {
  const NodeBox& box = self<NodeBox>(L);
  push(L, fmt::format("<{} {} {}>", node_kind_name(box.node().kind), printable(box.node().name),
                           printable(box.node().op)));
  return 1;
}

int session_node(lua_State* L) {
  SessionBox& box = self<SessionBox>(L);
  const std::string name = text_argument(L, 2, "node: name");
  OptionTable options(L, 3, "node");
  const auto rank = rank_option(options, box), graph = options.id("graph");
  options.finish();
  const NodeRef ref = value_or_throw(find_node(box.open().graphs(), name, rank, graph));
  push_node(L, box.shared_from_this(), graph_pointer(box, ref.graph), ref.node);
  return 1;
}

constexpr Member kNodeMethods[] = {
    {"value", guard<node_value>}, {"output", guard<node_output>}, {"input", guard<node_input>},
    {"arguments", guard<node_arguments>}, {"gradient", guard<node_gradient>}, {"parameter", guard<node_parameter>},
    {"first_use", guard<node_first_use>}};
constexpr Member kNodeFields[] = {
    {"name", guard<get_name>},          {"op", guard<get_op>},         {"kind", guard<get_kind>},
    {"scope", guard<get_scope>},        {"rank", guard<get_rank>},     {"graph", guard<get_graph>},
    {"graph_id", guard<get_graph_id>},  {"key", guard<get_key>},       {"inputs", guard<get_inputs>}, {"outputs", guard<get_outputs>},
    {"users", guard<get_users>},        {"stack", guard<get_stack>},   {"attrs", guard<get_attributes>},
    {"trainable", guard<get_trainable>}, {"constant", guard<get_constant>},
    {"unwritten", guard<get_unwritten>}};
constexpr Member kNodeMeta[] = {{"__tostring", guard<node_text>}};

}  // namespace

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
  push_list(L, stack, [L](const StackFrame& frame) {
    lua_createtable(L, 0, 3);
    set_field(L, "file", frame.file);
    set_field(L, "line", frame.line);
    set_field(L, "code", frame.code);
    set_result_class(L, "frame");
  });
}

void bind_node(lua_State* L) {
  define_class<NodeBox>(L, {.methods = kNodeMethods, .fields = kNodeFields, .meta = kNodeMeta});
  add_methods<SessionBox>(L, {{"node", guard<session_node>}});
}

}  // namespace msdbg::script
