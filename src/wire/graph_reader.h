// Builds our graph from the pieces of a GraphProto. Private to the wire module.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "msdbg/graph.h"
#include "msdbg/text_arena.h"
#include "msdbg/text_table.h"
#include "wire/node_parts.h"
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

  /// An input whose producer comes later, or is none of the operators.
  struct Pending {
    NodeId node = kNoNode;
    uint32_t slot = 0;
    std::string_view name;
  };
  struct KnownType {
    SharedList<OutputType> outputs;
    std::vector<uint32_t> widths;  ///< see output_types()
  };

  Flavour find_flavour() const;
  Status read_parameters(GraphBuilder& builder);
  Status read_constants(GraphBuilder& builder);
  Status read_operators(GraphBuilder& builder);
  SharedText shared(std::string_view text);
  const KnownType* type_of(std::string_view encoded);
  bool read_attributes(const NodeParts& parts, SharedList<Attribute>& attributes);
  const Attribute* attribute_of(std::string_view encoded);
  bool read_operator(const NodeParts& parts, GraphBuilder& builder);
  void connect(GraphBuilder& builder);
  void resolve_picks(GraphBuilder& builder);
  void look_through_tuples(GraphBuilder& builder);
  bool spend(uint64_t parts, std::string_view name);
  void note_name(std::string_view name);
  void note(std::string text);

  int rank_;
  int id_;
  std::vector<std::string>* notes_;
  Flavour flavour_ = Flavour::kDebugger;
  std::string name_, root_name_;
  std::vector<Piece> nodes_, parameters_, constants_;
  TextTable<NodeId> by_number_;                                // operators, by the number that edges use
  TextTable<NodeId> by_key_;                                   // parameters and constants
  TextArena keys_;                                             // of constants
  std::vector<Pending> pending_;
  const SharedList<OutputType> unknown_outputs_{OutputType()};  // of a node without a type
  std::unordered_map<NodeId, int64_t> integers_;               // constants that can be the index of a TupleGetItem
  std::unordered_map<NodeId, std::vector<uint32_t>> offsets_;  // sequences that contain sequences: first slot of each element
  // Many nodes have the same texts, types, attributes and lines of code: by their encoded form.
  TextTable<SharedText> texts_;
  TextTable<KnownType> types_;
  TextTable<Attribute> attributes_;
  TextTable<SharedList<Attribute>> attribute_lists_;
  TextTable<SharedList<StackFrame>> stacks_;
  std::string_view last_address_;
  SharedList<StackFrame> last_stack_;
  std::vector<NodeId> pick_nodes_;                             // TupleGetItem nodes
  std::vector<Pick> picks_;                                    // by node: their sources, looking through nested tuples
  uint64_t bytes_ = 0;                                         // of all messages
  uint64_t budget_ = 0;                                        // inputs, attributes and outputs that may still be created
  size_t over_budget_ = 0;
  std::string first_over_budget_;
  size_t odd_names_ = 0;
  std::string first_odd_name_;
};

}  // namespace msdbg
