// Dumps of several ranks whose graphs and values a test writes down: pipelines, groups of some ranks, other collectives.
//
//   MadeRanks dump;
//   dump.rank(0, {"x"}, {{"Default/Log-op0", "Log", {"x"}}, {"Default/Send-op0", "Send", {"Default/Log-op0"}, {{"dest_rank", 1}}}});
//   dump.value(0, 0, "Default/Log-op0", {-INFINITY});
//   open_dump(dump.path());
//
// Every operator and parameter has the value 1 in each step that is not set.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "dump/dump_support.h"

namespace msdbg::test {

struct MadeNode {
  std::string name, op;
  std::vector<std::string> inputs = {};
  std::vector<std::pair<std::string, std::variant<std::string, int>>> attributes = {};
};

class MadeRanks {
 public:
  explicit MadeRanks(int steps = 1) : steps_(steps) {}

  MadeRanks& rank(int number, const std::vector<std::string>& parameters, const std::vector<MadeNode>& nodes, int graph = 0) {
    std::vector<testing::PbNode> made;
    std::string order = "NodeExecutionOrder-FullNameWithScope\n", history;
    for (const MadeNode& node : nodes) {
      testing::PbNode one{node.name, node.op, node.inputs};
      one.attributes = node.attributes;
      made.push_back(std::move(one));
      order += node.name + "\n";
      set(number, graph, node.op, node.name);
    }
    for (const std::string& name : parameters) set(number, graph, "Parameter", name);
    for (int step = 0; step < steps_; ++step) history += std::to_string(step) + "\n";
    const std::string id = std::to_string(graph), at = "rank_" + std::to_string(number);
    dir_->text(at + "/graphs/ms_output_trace_code_graph_" + id + ".pb", testing::graph_pb("kernel_graph" + id, id, parameters, made));
    dir_->text(at + "/execution_order/ms_execution_order_graph_" + id + ".csv", order);
    dir_->text(at + "/execution_order/ms_global_execution_order_graph_" + id + ".csv", history);
    return *this;
  }
  MadeRanks& value(int rank, int step, const std::string& name, std::initializer_list<double> values) {
    const auto& [graph, op] = nodes_.at({rank, name});
    write(rank, graph, step, op, name, testing::f32(values));
    return *this;
  }
  const std::string& path() const { return dir_->path(); }

 private:
  void set(int rank, int graph, const std::string& op, const std::string& name) {
    nodes_[{rank, name}] = {graph, op};
    for (int step = 0; step < steps_; ++step) write(rank, graph, step, op, name, testing::f32({1}));
  }
  void write(int rank, int graph, int step, const std::string& op, std::string name, const TensorPtr& tensor) {
    std::ranges::replace(name, '/', '_');
    const std::string folder = "rank_" + std::to_string(rank) + "/Net/" + std::to_string(graph) + "/" + std::to_string(step) + "/";
    dir_->npy(folder + op + "." + name + ".0.0." + std::to_string(1000 + step) + ".output.0.DefaultFormat.Float32.npy", tensor);
  }

  int steps_;
  std::unique_ptr<testing::TempDir> dir_ = std::make_unique<testing::TempDir>();
  std::map<std::pair<int, std::string>, std::pair<int, std::string>> nodes_;  // by rank and name: graph and type
};

}  // namespace msdbg::test
