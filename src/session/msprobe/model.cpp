#include "session/msprobe/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "msdbg/hash.h"
#include "session/msprobe/exchange_calls.h"
#include "session/msprobe/identity.h"
#include "session/msprobe/usual_makers.h"

namespace msdbg::msprobe {
namespace {

class Joiner {
 public:
  Joiner(int rank, int graph) : builder_(rank, graph) {
    if (graph > 0) builder_.set_name("graph");  // beside pynative/
  }

  RankGraph run(std::vector<StepTable> steps) {
    for (StepTable& step : steps) add(step);
    add_overwritten(steps);
    finish_nodes();
    RankGraph out;
    out.graph = builder_.build();
    for (size_t i = 0; i < steps.size(); ++i) {
      StepValues values = std::move(values_[i]);
      values.path = std::move(steps[i].place.path);
      values.calls = std::move(steps[i].calls);
      values.cut = std::move(steps[i].cut);
      const auto earlier = [&](const Owner& a, const Owner& b) { return out.graph->node(a.node).order < out.graph->node(b.node).order; };
      std::stable_sort(values.owners.begin(), values.owners.end(), earlier);
      values.owner_of.assign(out.graph->nodes().size(), kNoOwner);
      for (uint32_t place = 0; place < values.owners.size(); ++place) values.owner_of[values.owners[place].node] = place;
      for (Overwritten& each : values.overwritten) {
        for (TensorId* id : {&each.before, &each.after}) {
          id->rank = out.graph->rank();
          id->graph = out.graph->id();
          id->step = steps[i].place.step;
        }
      }
      out.steps.emplace(steps[i].place.step, std::move(values));
    }
    return out;
  }

 private:
  /// What is collected while nodes may still get more slots.
  struct Draft {
    std::vector<OutputType> outputs;
    std::vector<Edge> inputs;
    std::vector<bool> disputed;       ///< inputs whose maker differs between steps
    std::vector<NodeId> parameters;   ///< of a module: inputs behind the others
    size_t seen_in = 0;               ///< number of the last step that has the node
  };

  void add(StepTable& step) {
    StepValues& values = values_.emplace_back();
    std::vector<NodeId> nodes(step.calls.size(), kNoNode);
    add_parameters(step, values);
    knows_parameters_ = knows_parameters(step);
    NodeId before = kNoNode;
    std::map<std::string, uint64_t> gradient_calls;
    for (uint32_t call = 0; call < step.calls.size(); ++call) {
      const NodeId node = node_of(step, call, nodes, gradient_calls);
      if (drafts_[node].seen_in == values_.size()) continue;  // two calls of one step are never one node
      drafts_[node].seen_in = values_.size();
      place(node, before);
      before = node;
      nodes[call] = node;
      values.owners.push_back({node, call, UINT32_MAX, false});
      extend(node, step.calls[call], step.makers[call].size());
    }
    for (uint32_t call = 0; call < step.calls.size(); ++call) {
      if (nodes[call] == kNoNode) continue;
      const CallFacts& facts = step.facts[call];
      CallLinks& links = links_[nodes[call]];
      links.in_steps = hash_step(links.in_steps, static_cast<uint64_t>(step.place.step));
      links.took_unknown = !step.calls[call].has_inputs && facts.role != CallRole::kParameterGradients;
      if (facts.caller_call != kNoCall) links.caller = nodes[facts.caller_call];
      if (facts.forward != kNoCall) links.forward = nodes[facts.forward];
      if (facts.role == CallRole::kModule) join_parameters(step, call, nodes[call]);
      join_edges(step, call, nodes);
    }
    if (!step.cut.empty()) add_cut(values, before);
    nodes_.push_back(std::move(nodes));
  }

  void add_overwritten(const std::vector<StepTable>& steps) {
    const UsualMaker usual = [&](NodeId node, uint32_t slot) {
      const Draft& draft = drafts_[node];
      return slot < draft.inputs.size() && !draft.disputed[slot] ? draft.inputs[slot] : Edge{};
    };
    std::vector<std::vector<Overwritten>> found = find_overwritten(steps, nodes_, usual);
    for (size_t i = 0; i < steps.size(); ++i) values_[i].overwritten = std::move(found[i]);
  }

  // ---- parameters ----

  void add_parameters(const StepTable& step, StepValues& values) {
    const size_t step_number = values_.size();
    for (uint32_t call = 0; call < step.calls.size(); ++call) {
      for (uint32_t slot = 0; slot < step.calls[call].parameters.size(); ++slot) {
        const Record& record = step.calls[call].parameters[slot];
        std::string name = parameter_name(step.facts[call], record);
        const auto [at, fresh] = parameters_.try_emplace(name, kNoNode);
        if (fresh) {
          Node node;
          node.kind = NodeKind::kParameter;
          node.op = "Parameter";
          node.scope = scope_of_module(step.facts[call].name.path);
          node.name = std::move(name);
          node.trainable = record.requires_grad;
          at->second = add_node(std::move(node));
          drafts_[at->second].outputs = {{record.dtype, record.problem.empty() ? std::optional(record.shape) : std::nullopt}};
        }
        Draft& draft = drafts_[at->second];
        if (draft.seen_in == step_number) continue;  // a module that was called twice
        draft.seen_in = step_number;
        values.owners.push_back({at->second, call, slot, false});
      }
    }
  }

  // ---- nodes ----

  NodeId node_of(const StepTable& step, uint32_t call, const std::vector<NodeId>& nodes, std::map<std::string, uint64_t>& gradient_calls) {
    const CallFacts& facts = step.facts[call];
    std::string name = step.calls[call].name;
    // 26.0 goes on counting over the steps.
    if (facts.role == CallRole::kParameterGradients && facts.name.number)
      name = fmt::format("{}.parameters_grad.{}", facts.name.stem, gradient_calls[std::string(facts.name.stem)]++);
    CallIdentity identity;
    if (facts.role == CallRole::kForward || facts.role == CallRole::kOptimizer) {
      identity.frames = CallIdentity::frames_of(facts.stack);
      identity.caller = facts.caller;
    }
    identity.subject = subject_of(step, call, nodes);
    identity.parameter = optimized_parameter(step, call);
    std::vector<CallIdentity>& known = identities_[name];
    // Names settle after the first step, so the latest is the most likely.
    for (auto each = known.rbegin(); each != known.rend(); ++each) {
      if (!each->fits(identity) || drafts_[each->node].seen_in == values_.size()) continue;
      each->learn(identity);
      return each->node;
    }
    Node node;
    node.name = known.empty() ? name : fmt::format("{}#{}", name, known.size() + 1);
    node.op = step.calls[call].op.empty() ? std::string(facts.name.op) : step.calls[call].op;
    node.scope = facts.scope;
    node.stack = facts.stack;
    node.role = facts.role;
    node.attributes = step.calls[call].attributes;
    if (facts.recomputed || step.calls[call].unusual) {
      std::vector<Attribute> attributes = node.attributes.get();
      attributes.push_back({"recomputed", "true"});
      node.attributes = std::move(attributes);
    }
    if (facts.role == CallRole::kParameterGradients) node.attributes = gradient_names(facts, step.calls[call]);
    identity.node = add_node(std::move(node));
    known.push_back(identity);
    return identity.node;
  }

  std::string subject_of(const StepTable& step, uint32_t call, const std::vector<NodeId>& nodes) {
    const CallFacts& facts = step.facts[call];
    if (facts.forward != kNoCall && nodes[facts.forward] != kNoNode) return builder_.node(nodes[facts.forward]).name;
    std::string text;
    if (is_exchange(facts.name)) {
      for (const Attribute& each : step.calls[call].attributes) text += fmt::format("{}={} ", each.name, each.value);
    }
    if (facts.role != CallRole::kOptimizer) return text;
    for (const Record& input : step.calls[call].inputs) text += shape_text(input.shape);
    return text;
  }

  static bool knows_parameters(const StepTable& step) {
    return std::any_of(step.makers.begin(), step.makers.end(), [](const std::vector<Maker>& makers) {
      return std::any_of(makers.begin(), makers.end(), [](const Maker& maker) { return maker.parameter; });
    });
  }

  std::string optimized_parameter(const StepTable& step, uint32_t call) const {
    if (step.facts[call].role != CallRole::kOptimizer) return "";
    for (const Maker& maker : step.makers[call]) {
      if (maker.parameter) return parameter_name(step.facts[maker.call], step.calls[maker.call].parameters[maker.slot]);
    }
    // Lines tell the update of a weight from that of its momentum; without them, only this does. A constant has no maker.
    return step.facts[call].stack.empty() && knows_parameters_ ? "(none)" : "";
  }

  NodeId add_node(Node node) {
    const NodeId id = builder_.add(std::move(node));
    drafts_.emplace_back();
    links_.emplace_back();
    next_.push_back(kNoNode);
    placed_.push_back(false);
    return id;
  }

  /// A call that is new in a step comes behind the one that ran before it.
  void place(NodeId node, NodeId before) {
    if (placed_[node]) return;
    placed_[node] = true;
    NodeId& link = before == kNoNode ? first_ : next_[before];
    next_[node] = link;
    link = node;
  }

  void extend(NodeId node, const CallRecord& call, size_t inputs) {
    Draft& draft = drafts_[node];
    if (draft.inputs.size() < inputs) {
      draft.inputs.resize(inputs);
      draft.disputed.resize(inputs);
    }
    for (size_t slot = draft.outputs.size(); slot < call.outputs.size(); ++slot) {
      const Record& record = call.outputs[slot];
      draft.outputs.push_back({record.dtype, record.problem.empty() ? std::optional(record.shape) : std::nullopt});
    }
  }

  void join_edges(const StepTable& step, uint32_t call, const std::vector<NodeId>& nodes) {
    Draft& draft = drafts_[nodes[call]];
    for (size_t slot = 0; slot < step.makers[call].size(); ++slot) {
      const Maker& maker = step.makers[call][slot];
      if (maker.call == kNoCall || draft.disputed[slot]) continue;
      Edge edge;
      if (maker.parameter) {
        edge.node = parameters_.at(parameter_name(step.facts[maker.call], step.calls[maker.call].parameters[maker.slot]));
      } else {
        edge = {nodes[maker.call], maker.slot, {}};
      }
      if (edge.node == kNoNode || edge.node == nodes[call]) continue;
      Edge& known = draft.inputs[slot];
      if (known.node == kNoNode) {
        known = edge;
      } else if (known.node != edge.node || known.slot != edge.slot) {
        known = {};
        draft.disputed[slot] = true;
      }
    }
  }

  void join_parameters(const StepTable& step, uint32_t call, NodeId node) {
    Draft& draft = drafts_[node];
    if (!draft.parameters.empty()) return;
    for (const Record& record : step.calls[call].parameters)
      draft.parameters.push_back(parameters_.at(parameter_name(step.facts[call], record)));
  }

  /// Takes the place of what the table lost, so that no check calls the step healthy.
  void add_cut(StepValues& values, NodeId before) {
    if (cut_ == kNoNode) {
      Node node;
      node.name = "(calls that were lost)";
      node.op = "lost";
      node.role = CallRole::kForward;
      cut_ = add_node(std::move(node));
      drafts_[cut_].outputs.resize(1);
    }
    place(cut_, before);
    values.owners.push_back({cut_, kNoCall, UINT32_MAX, true});
  }

  void finish_nodes() {
    for (NodeId id = 0; id < drafts_.size(); ++id) {
      std::vector<Edge> inputs = std::move(drafts_[id].inputs);
      for (const NodeId parameter : drafts_[id].parameters) inputs.push_back({parameter, 0, {}});
      builder_.node(id).inputs = std::move(inputs);
      builder_.set_outputs(id, std::move(drafts_[id].outputs));
    }
    std::vector<NodeId> order;
    for (NodeId node = first_; node != kNoNode; node = next_[node]) order.push_back(node);
    builder_.set_execution_order(std::move(order));
    if (links_.empty()) links_.emplace_back();
    builder_.set_calls(std::move(links_));
  }

  GraphBuilder builder_;
  std::vector<Draft> drafts_;       // by node
  std::vector<CallLinks> links_;    // by node
  std::vector<NodeId> next_;        // by node: the order of execution as a list
  std::vector<bool> placed_;
  NodeId first_ = kNoNode, cut_ = kNoNode;
  bool knows_parameters_ = false;  // of the step that is added: some inputs equal them
  std::unordered_map<std::string, NodeId> parameters_;
  std::unordered_map<std::string, std::vector<CallIdentity>> identities_;  // by name
  std::vector<StepValues> values_;
  std::vector<std::vector<NodeId>> nodes_;  // by step and call
};

}  // namespace

RankGraph join_steps(int rank, int graph, std::vector<StepTable> steps) { return Joiner(rank, graph).run(std::move(steps)); }

}  // namespace msdbg::msprobe
