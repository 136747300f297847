// The pieces of diff_sessions(): which parts of the two sides correspond, and what is compared in them.
//
// The owner's thread only, unless documented otherwise.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "msdbg/diff.h"

namespace msdbg {

/// Two graphs whose nodes were matched.
struct GraphPair {
  const Graph *a = nullptr, *b = nullptr;
  bool edges_known = true;                             ///< of both sides; see knows_edges()
  GraphMatch match;
  std::vector<const NodeMatch*> of_a, of_b;            ///< by node; null: only this side has it
  std::vector<PathLength> paths;                       ///< by node of b
  std::map<NodeId, std::vector<uint32_t>> updated;     ///< of b: operator -> input slots that it overwrites
  std::map<NodeId, NodeId> updater;                    ///< of b: parameter -> last operator that overwrites it
};

/// One step of one graph on both sides.
struct DiffPart {
  size_t graphs = 0;  ///< index of the GraphPair
  int rank_a = 0, rank_b = 0;
  int64_t step_a = 0, step_b = 0;
  size_t ordinal = 0;  ///< how many earlier steps of this graph were compared
  std::optional<size_t> previous;  ///< the part of the previous step
};

struct DiffPlan {
  std::vector<std::unique_ptr<GraphPair>> graphs;
  std::vector<DiffPart> parts;  ///< by step, rank, graph
};

/// Matches the nodes of two graphs; without known edges, uses the shapes in the first requested steps.
std::unique_ptr<GraphPair> pair_nodes(Session& a, Session& b, const Graph& graph_a, const Graph& graph_b, const DiffOptions& options,
                                      std::vector<std::string>* problems);

/// The members of `numbers` that are in `wanted`.
std::vector<int64_t> chosen(std::span<const int64_t> numbers, const IntSet& wanted);

/// Error: kNotFound if a side lacks all requested ranks, graphs or steps.
Status check_choice(const Session& a, const Session& b, const DiffOptions& options);
/// The reason why no step of A corresponds to one of B although both sides have the requested data.
Status nothing_paired(const Session& a, const Session& b, const DiffOptions& options, const DiffPlan& plan);

/// Pairs ranks, graphs and steps, and matches the nodes; nodes without a counterpart are added to `result`.
/// Error: kInvalidArgument if both sides are the same.
Result<DiffPlan> plan_diff(Session& a, Session& b, const DiffOptions& options, DiffResult& result);

/// The tensors of a part in order, not yet compared.
std::vector<TensorDiff> list_tensors(Session& a, Session& b, const DiffPlan& plan, const DiffPart& part, const DiffOptions& options);

/// One thread's block buffers.
struct DiffBuffers {
  std::vector<std::byte> a, b;
};
/// Fills state, measures, types and shapes; adds the number of bytes read to `bytes`. Any thread.
/// Error: only kInterrupted; other failures become the entry's reason.
Status compare_entry(Session& a, Session& b, const DiffOptions& options, TensorDiff& entry, DiffBuffers& buffers, uint64_t* bytes);

/// Compares a pair of which a side has no elements, by checksums and statistics. False if they say nothing. Any thread.
bool compare_facts(Session& a, Session& b, const DiffOptions& options, TensorDiff& entry);

/// Assigns roles and amplification to the different tensors.
class Blame {
 public:
  /// `part_of[i]` is the part of `result.tensors[i]`.
  Blame(Session& a, Session& b, const DiffPlan& plan, const DiffOptions& options, DiffResult& result, const std::vector<size_t>& part_of);
  Status run();

 private:
  /// The known facts about one input.
  struct Input {
    bool known = false, differs = false;
    double error = 0;
    std::string name;  ///< `input:1 NODE`
    bool behind_random = false;  ///< as of TensorDiff
    bool seed = false;           ///< an integer constant
  };
  void judge(TensorDiff& entry, size_t part);
  std::vector<Input> inputs_of_call(const TensorDiff& entry, size_t part);
  std::optional<Input> from_input(size_t part, NodeId node, uint32_t slot, uint32_t execution);
  void find_argument(TensorDiff& entry, size_t part) const;
  bool is_scope(const TensorDiff& entry, size_t part);
  std::vector<Input> inputs_of(const TensorDiff& entry, size_t part, NodeId node);
  Input input_of(const TensorDiff& entry, size_t part, NodeId node, uint32_t slot);
  void inputs_through_unmatched(size_t part, uint32_t execution, NodeId node, std::set<NodeId>& seen, std::vector<Input>& inputs);
  std::optional<Input> from_entry(size_t part, NodeId node, uint32_t slot, uint32_t execution);
  std::optional<Input> recorded(size_t part, NodeId node_b, uint32_t slot, uint32_t execution);
  std::optional<Input> recorded_pair(size_t part, const TensorId& in_a, const TensorId& in_b);
  std::optional<Input> parameter_at_start(size_t part, NodeId parameter);
  bool is_behind_random(size_t part, NodeId node, uint32_t slot, uint32_t execution) const;
  bool begins_behind_random(size_t part, NodeId parameter) const;
  void note_parameter(const TensorDiff& entry, size_t part);
  const GraphPair& graphs(size_t part) const { return *plan_.graphs[plan_.parts[part].graphs]; }

  Session &a_, &b_;
  const DiffPlan& plan_;
  const DiffOptions& options_;
  DiffResult& result_;
  const std::vector<size_t>& part_of_;
  std::map<TensorId, size_t> by_b_;  ///< entries
  std::map<std::pair<int, std::string>, bool> left_random_;  ///< parameters that an optimizer wrote, by rank and name
  std::map<size_t, std::set<NodeId>> around_;  ///< by part: modules of recorded calls around one that differs
  std::map<const Graph*, bool> has_functions_;  ///< recorded calls: not only modules
  std::set<size_t> differed_;                   ///< parts with a difference so far
  std::map<TensorId, std::optional<Input>> recorded_;  ///< by the tensor of b
  DiffBuffers buffers_;
  Status status_;
};

}  // namespace msdbg
