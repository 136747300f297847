// Joins file names with graph nodes: one Joiner per rank and graph directory, for all its steps.
//
// The rules differ by epoch; docs/dump-format.md describes them in "From file to node".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msdbg/chains.h"
#include "msdbg/graph.h"
#include "msdbg/text_arena.h"
#include "msdbg/text_table.h"
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
  /// Adds the nodes of a graph that may have files in the directory, in list order. The builder must stay until the last find().
  void add_graph(int graph, GraphBuilder& builder);
  /// Announces a name; announce all names of all steps before the first find(). Returns what find() may be told about it.
  uint32_t announce(const FileName& name);
  /// Determines the epoch and pairs the numbers after `-op`. "" if the names fit several epochs.
  std::string finish();

  /// The nodes that may have written a file of this name; empty if unknown. Several if nodes share the name and nothing
  /// distinguishes them. Any thread, after finish().
  std::vector<JoinedNode> find(const FileName& name, uint32_t announced = kUnknown) const;

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;
  using Nodes = std::vector<JoinedNode>;
  using NodeLists = Chains<JoinedNode>;
  struct Numbered {
    JoinedNode node;
    std::optional<int64_t> number;
    const Node* source;  // in the builder
  };
  /// A number after `-op` in file names, and the type of one output.
  struct FileNumber {
    int64_t number = 0;
    uint32_t slot = 0;
    DType dtype = DType::kUnknown;
    bool operator==(const FileNumber&) const = default;
  };
  /// The files of a stem with one operator type.
  struct Announced {
    std::string_view op_type;            // in the list of the files
    Chains<FileNumber>::List files;      // as announced, without some repeated ones
    uint32_t newest = 0;                 // the last of them
    uint32_t paired = 0, paired_end = 0;  // in paired_; from finish() on
  };
  struct Stem {
    Chains<Numbered>::List nodes;
    Chains<Announced>::List announced;
  };
  struct Typed {
    JoinedNode node;
    std::string_view op;
  };
  /// Names that only old releases and headerless files use.
  struct OldNames {
    TextArena texts;
    Chains<Typed> nodes;
    TextTable<Chains<Typed>::List> by_last;
    TextTable<Chains<Typed>::List> by_tail;  // the last component after its last `_`
    TextTable<JoinedNode> by_dashed;
  };

  void add_to(TextTable<NodeLists::List>& table, std::string_view text, const JoinedNode& node);
  std::optional<uint32_t> find_announced(const Stem& stem, std::string_view op_type) const;
  std::optional<JoinedNode> find_paired(const Announced& announced, int64_t number) const;
  Nodes find_by_number(const FileName& name, uint32_t announced) const;
  Nodes find_by_last_component(const FileName& name) const;
  Nodes find_by_tail(const FileName& name) const;
  Nodes find_parameter(const FileName& name) const;
  void pair(const Stem& stem, Announced& announced);
  /// The nodes of the stem with this type, or all of them if no node has it.
  std::vector<const Numbered*> nodes_of(const Stem& stem, std::string_view op_type) const;
  const OldNames& old_names() const;
  bool is_last_component(std::string_view op);

  TextArena texts_;         // of the tables
  TextTable<Stem> by_stem_;  // underscored full name without its number
  Chains<Numbered> numbered_;
  Chains<Announced> announced_;
  Chains<FileNumber> files_;
  std::vector<std::pair<int64_t, JoinedNode>> paired_;  // of each Announced by number
  NodeLists nodes_;
  TextTable<NodeLists::List> parameters_, folded_parameters_, constants_;
  std::vector<std::pair<int, GraphBuilder*>> graphs_;
  mutable std::optional<OldNames> old_names_;  // when first asked for, at the latest in finish()
  size_t nodes_known_ = 0;
  int questions_ = 0;  // for last components
  bool raw_ = false, underscored_ = false, typed_ = false, untyped_ = false, last_component_ = false, constant_in_step_ = false;
};

/// `/`, `\`, `.` and blank each become one `_`.
std::string underscored(std::string_view name);
/// The form of an operator's name in 1.3 to 2.2: the text after the last `--` of the dashed name; empty without one.
std::string last_dashed_component(std::string_view name);
/// `cst3`, `data-12`: names that the writer gives to constants.
bool is_constant_name(std::string_view op);

}  // namespace msdbg::dump
