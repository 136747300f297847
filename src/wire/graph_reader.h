// Builds our graph from the pieces of a GraphProto. Private to the wire module.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "msdbg/graph.h"
#include "wire/value_text.h"

namespace msdbg {

/// Reads one or more encoded GraphProto messages (protobuf joins the parts of a repeated message), then builds the graph.
class GraphReader {
 public:
  GraphReader(int rank, int id, std::vector<std::string>* notes) : rank_(rank), id_(id), notes_(notes) {}

  /// `offset` is the position of `bytes` in the file. The bytes must live until finish(). Error: kCorrupt.
  Status add(std::span<const std::byte> bytes, uint64_t offset);
  Result<GraphBuilder> finish();

 private:
  struct Piece {
    std::span<const std::byte> bytes;
    uint64_t offset = 0;
  };
  /// The tuple and the element that a TupleGetItem node selects.
  struct Pick {
    NodeId tuple = kNoNode;
    uint32_t slot = 0;
  };

  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };

  Flavour find_flavour() const;
  Status read_parameters(GraphBuilder& builder);
  Status read_constants(GraphBuilder& builder);
  Status read_operators(GraphBuilder& builder);
  SharedText shared(std::string_view text);
  void read_operator(const debugger::NodeProto& proto, GraphBuilder& builder);
  void connect(GraphBuilder& builder);
  void resolve_picks(GraphBuilder& builder);
  void look_through_tuples(GraphBuilder& builder);
  bool spend(uint64_t parts, const std::string& name);
  void note_name(const std::string& name);
  void note(std::string text);

  int rank_;
  int id_;
  std::vector<std::string>* notes_;
  Flavour flavour_ = Flavour::kDebugger;
  std::string name_, root_name_;
  std::vector<Piece> nodes_, parameters_, constants_;
  std::unordered_map<std::string, NodeId> by_number_;         // operators, by the number that edges use
  std::unordered_map<std::string, NodeId> by_key_;            // parameters and constants
  std::unordered_map<NodeId, int64_t> integers_;              // constants that can be the index of a TupleGetItem
  std::unordered_map<NodeId, std::vector<uint32_t>> offsets_;  // sequences that contain sequences: first slot of each element
  std::unordered_map<std::string, SharedText, TextHash, std::equal_to<>> texts_;
  std::unordered_map<std::string, SharedList<StackFrame>> stacks_;  // by source address
  std::vector<NodeId> pick_nodes_;                             // TupleGetItem nodes
  std::unordered_map<NodeId, Pick> picks_;                     // their sources, looking through nested tuples
  uint64_t bytes_ = 0;                                         // of all messages
  uint64_t budget_ = 0;                                        // inputs, attributes and outputs that may still be created
  size_t over_budget_ = 0;
  std::string first_over_budget_;
  size_t odd_names_ = 0;
  std::string first_odd_name_;
};

}  // namespace msdbg
