// Which values of a network several ranks may have to share, as far as the graphs say. Reads no tensors.
//
// Built once, then changed only by the search for differences. The session's owner thread only.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/by_rank.h"
#include "analysis/collectives.h"
#include "msdbg/replicas.h"
#include "msdbg/shared_list.h"
#include "msdbg/text_table.h"

namespace msdbg {

/// Ranks, each in one part: those of a part share a value.
using Parts = std::vector<std::vector<int>>;

/// Most values have the parts and the reason of the one before: those are stored once.
class LastParts {
 public:
  SharedList<std::vector<int>> shared(Parts parts);
  SharedText shared(std::string reason);

 private:
  SharedList<std::vector<int>> parts_;
  SharedText reason_;
};

/// A node that several ranks have under the same name and whose outputs they may share. There may be a million of them.
struct ReplicaValue {
  int graph = 0;                      ///< Graph::id()
  std::string_view name;              ///< the text is the first graph's
  ByRank<NodeRef> nodes;
  ReplicaKind what = ReplicaKind::kParameter;
  bool collective = false;
  bool updated = false;               ///< a parameter that an operator of the graph updates: its file shows it after that
  bool nameless = false;              ///< an update of a parameter that is no node, or (kParameter) an input of a call that no call made
  std::vector<size_t> from;           ///< operators: the replicas it is computed from; parameters: what its updates are computed from
  std::vector<size_t> updates;        ///< parameters: the operators among `from` that update it
  std::optional<size_t> like;         ///< an optimizer's state: the weight it belongs to
  bool of_single_number = false;      ///< an optimizer's state, of a weight with one element
  SharedList<std::vector<int>> parts; ///< empty until the values of a step decide them
  SharedList<std::vector<int>> same_inputs;  ///< a call: ranks on which it takes the same; empty: all
  bool assumed = true;                ///< the graph does not tell the parts
  bool untrained = false;             ///< a parameter without an optimizer
  bool guessed = false;               ///< a weight by its name alone: there is no graph file
  bool unreduced = false;             ///< untrained, or without a collective for its gradient where other gradients have one
  /// A weight whose gradient no collective reduces, although they reduce those of other weights and do nothing else: no shard.
  bool drifts = false;
  bool apart = false;                 ///< a weight of no two ranks (see ReplicaApart), which is read to see whether it becomes equal again
  SharedText reason;                  ///< why these parts
  SharedList<std::pair<std::vector<int>, std::string>> reasons;  ///< of parts with a reason of their own

  std::string_view reason_of(const std::vector<int>& part) const {
    const auto own = std::ranges::find(reasons, part, &std::pair<std::vector<int>, std::string>::first);
    return own == reasons.end() ? std::string_view(reason) : std::string_view(own->second);
  }

  bool is_parameter() const { return what == ReplicaKind::kParameter || what == ReplicaKind::kOptimizerState; }
  /// The part of a rank; nullptr if it shares the value with no other rank.
  const std::vector<int>* part_of(int rank) const;
};

/// How the reason of parts begins that a collective proves; the names of its groups follow.
inline constexpr std::string_view kReducedBy = "their gradients pass AllReduce of ";

class ReplicaModel {
 public:
  ReplicaModel(const Session& session, const IntSet& ranks);

  std::vector<ReplicaValue>& values() { return values_; }
  const std::vector<ReplicaValue>& values() const { return values_; }
  /// The value of a node; nullopt for nodes that are no replicas.
  std::optional<size_t> find(const Graph& graph, NodeId node) const;
  /// Input slots that take a replica, with its value; inputs that the operator updates come with `after` true.
  struct Taken {
    NodeRef consumer;
    uint32_t slot = 0;
    size_t value = 0;
    bool after = false;
  };
  std::vector<Taken> inputs() const;
  /// The weight that an optimizer's state belongs to.
  std::optional<size_t> weight_of(const ReplicaValue& state) const;
  /// False: the graphs have no collective, and nothing keeps the ranks together.
  bool joined() const { return joined_; }
  /// True if a call sends to one other rank, or if no exchange was recorded.
  bool may_be_pipeline() const { return sends_ || !joined_; }
  /// All graphs show the operators, which are the same on each rank and exchange nothing.
  bool nothing_exchanged() const;
  /// All ranks take part in whatever the graphs exchange.
  bool all_exchange_together() const;
  /// As in gossip: the ranks exchange values with one other rank at a time, and with another one later.
  bool only_pairs_exchange() const;
  /// Why a value that is no weight of its own is not compared where each rank has other weights.
  std::string reason_apart() const;
  /// The value turned out to be none that ranks share.
  void leave_out(size_t value, const std::string& reason);
  /// The same, without a reason so far.
  void set_alone(size_t value);
  std::vector<NotReplicated> left_out() const;

 private:
  using Key = std::pair<int, std::string_view>;  // graph id, name
  enum class Role : uint8_t { kNone, kNeutral, kShared };

  void find_rank_specific();
  void note_other_settings(const Graph& graph, const Node& node);
  void add_graph(const Graph& graph);
  bool is_shared_parameter(const Graph& graph, const Node& node, const std::vector<NodeId>& updaters);
  void compute_roles(const Graph& graph, std::vector<Role>& roles) const;
  bool takes_only_shared(const Graph& graph, const Node& node, const std::vector<Role>& roles, bool* any) const;
  bool is_nameless_update(const Graph& graph, const Node& node) const;
  void add_nameless_inputs(const Graph& graph);
  void add_node(const Graph& graph, const Node& node, ReplicaKind what);
  void add_collective(const Graph& graph, const Node& node);
  size_t add_value(const Graph& graph, std::string_view name, NodeId node, ReplicaKind what);
  void connect();
  void part_by_inputs(ReplicaValue& value, LastParts& last) const;
  void find_groups();
  bool has_other_exchange(const std::set<std::pair<const Graph*, NodeId>>& reducers) const;
  std::optional<size_t> find(int graph, std::string_view name) const;
  void note(const std::string& reason, Key key);

  const Session& session_;
  std::vector<const Graph*> graphs_;
  Collectives collectives_;
  bool joined_ = false, sends_ = false;
  std::vector<ReplicaValue> values_;
  std::map<int, TextTable<uint32_t>> by_name_;                                // by graph id: the names of values
  std::map<std::pair<const Graph*, NodeId>, std::vector<NodeId>> updaters_;  // of parameters
  std::set<const Graph*> has_parameters_;
  std::set<std::string> names_;                                               // of inputs that are values
  std::map<std::tuple<const Graph*, NodeId, uint32_t>, size_t> nameless_inputs_;
  std::map<std::pair<const Graph*, NodeId>, size_t> met_;                     // collectives that have other names on other ranks
  std::set<Key> rank_specific_;                                               // operators with attributes or constants of their rank
  std::map<std::string, std::set<Key>> left_out_;
};

}  // namespace msdbg
