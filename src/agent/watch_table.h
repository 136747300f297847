// The watchpoints of a debugger, and their evaluation with msdbg's own evaluator.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "agent/put_in.h"
#include "agent/tensor_store.h"
#include "debug_grpc.pb.h"
#include "msdbg/watch.h"

namespace msdbg::agent {

/// The time of an evaluation determines which conditions are judged.
enum class JudgeTime : uint8_t { kStepBegin, kOperator, kStepEnd, kRecheck, kInitialRecheck };

class WatchTable {
 public:
  explicit WatchTable(const ReleaseTraits& traits) : traits_(traits) {}

  void apply(const debugger::SetCMD& command);
  void clear();
  bool empty() const { return table_.empty(); }
  /// Whether any watchpoint can hit in a step, not only before the first one.
  bool judges() const;
  /// Whether one compares with the step before.
  bool needs_previous() const {
    return std::ranges::any_of(table_, [](const auto& entry) {
      return entry.second.condition && entry.second.condition->spec->needs_previous;
    });
  }

  /// Whether the operator's tensors must be read because a watchpoint may cover them.
  bool watches(TensorStore& store, NodeIndex node) {
    if (table_.empty()) return false;
    if (prepared_for_ != &store || prepared_version_ != version_) prepare(store);
    return wanted_[node];
  }
  /// Whether a watchpoint covers the operator itself, not only a parameter that it reads.
  bool asks(TensorStore& store, NodeIndex node) {
    if (table_.empty()) return false;
    if (prepared_for_ != &store || prepared_version_ != version_) prepare(store);
    return asked_[node];
  }
  /// Whether one may hit on a weight when a step begins: only what is about NaN and Inf.
  bool judges_beginnings(TensorStore& store);
  /// How much of the operators watchpoints cover.
  Wants coverage(TensorStore& store);
  /// Whether an operator that watchpoints cover reads an output of this one.
  bool feeds(TensorStore& store, NodeIndex node) {
    if (table_.empty()) return false;
    if (prepared_for_ != &store || prepared_version_ != version_) prepare(store);
    return feeds_[node];
  }
  /// A store is replaced; another one may come to the same address.
  void forget_store() { prepared_for_ = nullptr; }
  /// The store of this step is described again. `moved` is the new place of each tensor, TensorStore::kNowhere if there is none.
  void described_again(const std::vector<FlatIndex>& moved);
  /// Hits in the order in which the client sends them. `node` matters only for Moment::kOperator.
  std::vector<debugger::WatchpointHit> judge(TensorStore& store, JudgeTime when, NodeIndex node = 0);
  /// A new step: everything may be judged again.
  void clear_judged() {
    judged_.clear();
    put_in_.clear();
  }

 private:
  struct Watchpoint {
    uint32_t id = 0;
    debugger::WatchCondition wire;
    std::optional<Condition> condition;  ///< nullopt: accepted, never hits
    std::vector<debugger::WatchNode> nodes;
    // A tensor's name -> first node that covers it; plus the scopes that match by prefix.
    std::unordered_map<std::string, uint32_t> names;
    std::vector<uint32_t> prefixes;
  };
  struct Match {
    const Watchpoint* watchpoint;
    const std::string* name;
  };
  struct Found;

  std::optional<Condition> read_condition(const debugger::WatchCondition& wire) const;
  void index_nodes(Watchpoint& watchpoint) const;
  const std::string* match(const Watchpoint& watchpoint, const std::string& name) const;
  void prepare(TensorStore& store);
  bool due(const Watchpoint& watchpoint, JudgeTime when) const;
  bool note_state(const Watchpoint& watchpoint, const std::string& name, const Decision& decision);
  void judge_tensor(TensorStore& store, JudgeTime when, FlatIndex flat, std::vector<Found>& found);
  Decision judge_one(const Watchpoint& watchpoint, TensorStore& store, FlatIndex flat, const Stats& stats, const StatsRequest& computed,
                     Previous previous, bool readable, Semantics semantics) const;
  debugger::WatchpointHit make_hit(const Watchpoint& watchpoint, const Decision& decision, const std::string& name,
                                   uint32_t slot) const;

  const ReleaseTraits& traits_;
  // The same container type as in MindSpore: its iteration order determines the order of hits on one tensor and which name they
  // use.
  std::unordered_map<unsigned int, Watchpoint> table_;
  uint64_t version_ = 0;
  const TensorStore* prepared_for_ = nullptr;
  uint64_t prepared_version_ = 0;
  std::vector<bool> wanted_, asked_, feeds_;  // per operator: read when it is done; asked for by name; inputs of those
  bool everything_ = false;                  // some watchpoint covers whatever comes
  std::vector<std::vector<Match>> matches_;  // per source
  std::unordered_set<uint64_t> judged_;       // (tensor, watchpoint) judged in this step
  std::set<std::pair<unsigned int, std::string>> bad_;  // (watchpoint, parameter) that hit when they were judged last
  bool beginnings_ = false;                             // something is judged when a step begins
  PutIn put_in_;
};

}  // namespace msdbg::agent
