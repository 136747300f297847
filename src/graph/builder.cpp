// GraphBuilder: collects nodes, then builds the name index, the execution order and the lists of users.
#include <algorithm>
#include <bit>

#include "graph/pool.h"
#include "graph/roles.h"
#include "msdbg/graph.h"
#include "msdbg/text_table.h"

namespace msdbg {

GraphBuilder::GraphBuilder(int rank, int id) : graph_(std::make_unique<Graph>()), pool_(std::make_unique<Pool>()) {
  graph_->rank_ = rank;
  graph_->id_ = id;
  graph_->root_id_ = id;
}

GraphBuilder::GraphBuilder(GraphBuilder&& other) noexcept = default;
GraphBuilder& GraphBuilder::operator=(GraphBuilder&& other) noexcept = default;
GraphBuilder::~GraphBuilder() = default;

void GraphBuilder::set_name(std::string name) { graph_->name_ = std::move(name); }
void GraphBuilder::set_root_id(int id) { graph_->root_id_ = id; }
int GraphBuilder::root_id() const { return graph_->root_id_; }
void GraphBuilder::set_from_file(bool value) { graph_->from_file_ = value; }
void GraphBuilder::set_source_path(std::string path) { graph_->source_path_ = std::move(path); }

NodeId GraphBuilder::add(Node node) {
  node.id = static_cast<NodeId>(graph_->nodes_.size());
  pool_->share(node);
  graph_->nodes_.push_back(std::move(node));
  return graph_->nodes_.back().id;
}

Node& GraphBuilder::node(NodeId id) { return graph_->nodes_[id]; }
void GraphBuilder::set_outputs(NodeId id, std::vector<OutputType> outputs) {
  graph_->nodes_[id].outputs = pool_->share(std::move(outputs));
}
size_t GraphBuilder::size() const { return graph_->nodes_.size(); }
void GraphBuilder::reserve(size_t more) { graph_->nodes_.reserve(graph_->nodes_.size() + more); }

void GraphBuilder::set_calls(std::vector<CallLinks> calls) { graph_->calls_ = std::move(calls); }
void GraphBuilder::set_execution_order(std::vector<NodeId> nodes) { listed_order_ = std::move(nodes); }

std::vector<std::string> GraphBuilder::set_execution_order(std::span<const std::string> names) {
  // Operators may share a full name; the k-th line with that name then means the k-th operator.
  struct Same {
    NodeId next, last;
  };
  const std::vector<Node>& nodes = graph_->nodes_;
  TextTable<Same> operators;
  operators.reserve(nodes.size());
  std::vector<NodeId> after(nodes.size(), kNoNode);
  for (const Node& node : nodes) {
    if (node.kind != NodeKind::kOperator) continue;
    const auto [same, first] = operators.add(node.name, {node.id, node.id});
    if (first) continue;
    after[same.last] = node.id;
    same.last = node.id;
  }
  std::vector<std::string> unknown;
  listed_order_.clear();
  for (const std::string& name : names) {
    Same* const found = operators.find(name);
    if (found == nullptr) {
      unknown.push_back(name);
      continue;
    }
    // A rerun that appends to the file lists every name again; only the first listing counts.
    NodeId& next = found->next;
    if (next == kNoNode) continue;
    listed_order_.push_back(next);
    next = after[next];
  }
  return unknown;
}

GraphPtr GraphBuilder::build() {
  Graph& graph = *graph_;
  std::vector<Node>& nodes = graph.nodes_;

  // A Load may carry the name of the parameter it reads (1.3 to 1.5) and must not hide it.
  graph.by_name_.assign(std::bit_ceil(nodes.size() + nodes.size() / 2 + 1), kNoNode);
  const auto index = [&graph](const Node& node) {
    NodeId& place = graph.by_name_[graph.place_of(node.name)];
    if (place == kNoNode) place = node.id;
  };
  std::vector<NodeId> structural;
  for (const Node& node : nodes) {
    if (is_structural(node.op)) structural.push_back(node.id);
    else index(node);
  }
  for (const NodeId id : structural) index(nodes[id]);

  std::vector<char> listed(nodes.size(), 0);
  for (const NodeId id : listed_order_) listed[id] = 1;
  graph.execution_order_ = listed_order_;
  uint32_t order = 0;
  for (Node& node : nodes) {
    if (node.kind != NodeKind::kOperator) {
      node.order = order++;
    } else if (!listed[node.id]) {
      graph.execution_order_.push_back(node.id);
    }
  }
  for (const NodeId id : graph.execution_order_) nodes[id].order = order++;

  // Counting sort of the edges by their producer.
  graph.use_begin_.assign(nodes.size() + 1, 0);
  for (Node& node : nodes) {
    for (Edge& edge : node.inputs) {
      if (edge.node != kNoNode && edge.node >= nodes.size()) edge.node = kNoNode;
      if (edge.node == kNoNode) continue;
      edge.name = {};
      ++graph.use_begin_[edge.node + 1];
    }
  }
  for (size_t i = 1; i < graph.use_begin_.size(); ++i) graph.use_begin_[i] += graph.use_begin_[i - 1];
  graph.uses_.resize(graph.use_begin_.back());
  std::vector<uint32_t> fill(graph.use_begin_.begin(), graph.use_begin_.end() - 1);
  for (const Node& node : nodes) {
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      const Edge& edge = node.inputs[slot];
      if (edge.node != kNoNode) graph.uses_[fill[edge.node]++] = {node.id, slot, edge.slot};
    }
  }

  if (graph.recorded_calls()) {
    // The recorder knew its parameters, but not of all frameworks which of them are trained.
    for (const Node& node : nodes) {
      for (const auto& [parameter, slot] : told_gradients(graph, node)) nodes[parameter->id].trainable = true;
    }
    graph.calls_.resize(nodes.size());
    return GraphPtr(std::move(graph_));
  }
  std::vector<Roles> roles = parameter_roles(graph);
  for (Node& node : nodes) {
    if (node.kind != NodeKind::kParameter) continue;
    node.trainable = node.trainable || roles[node.id].trainable;
    node.optimizer_state = !node.trainable && (node.optimizer_state || roles[node.id].optimizer_state);
  }
  return GraphPtr(std::move(graph_));
}

}  // namespace msdbg
