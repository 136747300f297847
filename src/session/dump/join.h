// Joins file names with graph nodes: one Joiner per rank and graph directory, for all its steps.
//
// The rules differ by epoch; docs/dump-format.md describes them in "From file to node".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "msdbg/graph.h"
#include "session/dump/file_name.h"
#include "session/dump/step_index.h"

namespace msdbg::dump {

struct JoinedNode {
  int graph = 0;
  NodeId node = kNoNode;
  Note note = Note::kNone;
  bool operator==(const JoinedNode&) const = default;
};

class Joiner {
 public:
  /// Adds the nodes of a graph that may have files in the directory, in list order.
  void add_graph(int graph, GraphBuilder& builder);
  /// Announces a name; announce all names of all steps before the first find().
  void announce(const FileName& name);
  /// Determines the epoch and pairs the numbers after `-op`. "" if the names fit several epochs.
  std::string finish();

  /// The nodes that may have written a file of this name; empty if unknown. Several if nodes share the name and nothing
  /// distinguishes them.
  std::vector<JoinedNode> find(const FileName& name) const;

 private:
  using Nodes = std::vector<JoinedNode>;
  struct Numbered {
    JoinedNode node;
    std::optional<int64_t> number;
    std::string_view op;
    SharedList<OutputType> outputs;
  };
  /// Finds texts without a copy of them.
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  template <typename Value>
  using ByText = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;
  struct Announced {
    std::map<int64_t, std::map<uint32_t, DType>> numbers;  // number -> types of the output slots
    std::string op_type;
  };

  Nodes find_by_number(const FileName& name) const;
  Nodes find_by_last_component(const FileName& name) const;
  Nodes find_by_tail(const FileName& name) const;
  Nodes find_parameter(const FileName& name) const;
  void pair(const std::string& key, const Announced& announced);
  const std::vector<Numbered>* nodes_of(std::string_view key, std::string_view op_type, std::vector<Numbered>& of_type) const;

  ByText<std::vector<Numbered>> by_stem_;  // underscored full name without its number
  ByText<std::vector<std::pair<JoinedNode, std::string_view>>> by_last_, by_dashed_;
  ByText<std::vector<std::pair<JoinedNode, std::string_view>>> by_tail_;  // the last component after its last `_`
  ByText<Nodes> parameters_, folded_parameters_, constants_;
  std::map<std::pair<std::string, std::string>, Announced> announced_;  // (stem, type); only stems of nodes
  std::map<std::pair<std::string, std::string>, std::map<int64_t, JoinedNode>> paired_;
  size_t nodes_known_ = 0;
  bool underscored_ = false, typed_ = false, untyped_ = false, last_component_ = false, constant_in_step_ = false;
};

/// `/`, `\`, `.` and blank each become one `_`.
std::string underscored(std::string_view name);
/// The form of an operator's name in 1.3 to 2.2: the text after the last `--` of the dashed name; empty without one.
std::string last_dashed_component(std::string_view name);
/// `cst3`, `data-12`: names that the writer gives to constants.
bool is_constant_name(std::string_view op);

}  // namespace msdbg::dump
