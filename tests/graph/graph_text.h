// Graphs as text, for tests: one node per line, `NAME OP [in=A,B:1,...] [out=N]`.
#pragma once

#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

/// `Parameter` and `Const` create those kinds; an input `B:1` is output 1 of B; an unknown name gets no node.
inline GraphBuilder builder_from_text(const std::string& text, int rank = 0, int id = 0) {
  GraphBuilder builder(rank, id);
  builder.set_name("kernel_graph" + std::to_string(id));
  std::unordered_map<std::string, NodeId> ids;
  std::vector<std::pair<NodeId, std::string>> edges;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    Node node;
    std::string word, inputs;
    std::string op;
    if (!(words >> node.name >> op)) continue;
    node.op = op;
    const size_t slash = node.name.rfind('/');
    if (slash != std::string::npos) node.scope = node.name.substr(0, slash);
    if (node.op == "Parameter") node.kind = NodeKind::kParameter;
    if (node.op == "Const") node.kind = NodeKind::kConstant;
    size_t outputs = node.op == "UpdateState" ? 0 : 1;
    while (words >> word) {
      if (word.starts_with("in=")) inputs = word.substr(3);
      if (word.starts_with("out=")) outputs = std::stoul(word.substr(4));
    }
    node.outputs = std::vector<OutputType>(outputs, {DType::kFloat32, Shape{2, 3}});
    const std::string name = node.name;
    const NodeId id_of_node = builder.add(std::move(node));
    ids.try_emplace(name, id_of_node);
    std::istringstream list(inputs);
    while (std::getline(list, word, ',')) edges.emplace_back(id_of_node, word);
  }
  for (const auto& [consumer, reference] : edges) {
    Edge edge;
    edge.name = reference;
    std::string producer = reference;
    if (const size_t colon = reference.rfind(':'); colon != std::string::npos) {
      edge.slot = static_cast<uint32_t>(std::stoul(reference.substr(colon + 1)));
      producer.resize(colon);
    }
    if (const auto found = ids.find(producer); found != ids.end()) edge.node = found->second;
    builder.node(consumer).inputs.push_back(edge);
  }
  return builder;
}

inline GraphPtr graph_from_text(const std::string& text, int rank = 0, int id = 0) {
  return builder_from_text(text, rank, id).build();
}

inline std::vector<std::string> names_of(const std::vector<NodeRef>& nodes) {
  std::vector<std::string> names;
  for (const NodeRef& ref : nodes) names.push_back(ref.graph->node(ref.node).name);
  return names;
}

}  // namespace msdbg
