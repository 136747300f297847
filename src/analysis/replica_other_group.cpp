#include "analysis/replica_other_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/replica_moves.h"
#include "analysis/replica_sets.h"

namespace msdbg {
namespace {

class GroupFinder {
 public:
  GroupFinder(Session& session, const ReplicaModel& model, ReplicaBuffers& buffers) : session_(session), model_(model), buffers_(buffers) {
    for (const ReplicaValue& value : model.values()) {
      if (value.what != ReplicaKind::kParameter || value.assumed) continue;
      for (const std::vector<int>& part : value.parts) {
        const std::string_view reason = value.reason_of(part);
        if (part.size() < 2 || !reason.starts_with(kReducedBy)) continue;
        ++weights_[part];
        names_[part].insert(std::string(reason.substr(kReducedBy.size())));
      }
    }
  }

  void run(ReplicasResult& result) {
    std::optional<size_t> first;
    std::set<std::string> own, usual;
    std::vector<ReplicaDifference> kept;
    for (ReplicaDifference& each : result.differences) {
      if (first && is_same_weight(each, kept[*first])) {
        join(each, kept[*first]);
        continue;
      }
      if (result.steps.empty() || each.tensor.step != result.steps.front() || !is_of_other_group(each)) {
        kept.push_back(std::move(each));
        continue;
      }
      const std::vector<int> ranks = all_ranks(each);
      add_names(ranks, own);
      for (const int rank : ranks) add_names(usual_part(rank), usual);
      if (first) {
        join(each, kept[*first]);
      } else {
        first = kept.size();
        each.cause = ReplicaCause::kGroup;
        each.decided = false;
        kept.push_back(std::move(each));
      }
    }
    result.differences = std::move(kept);
    if (!first) return;
    ReplicaDifference& made = result.differences[*first];
    made.odd = all_ranks(made);
    made.others = {made.odd.front()};
    made.odd.erase(made.odd.begin());
    made.arguments = fmt::format("{} instead of {}", listed(own), listed(usual));
  }

 private:
  /// The group that reduces the gradients of most weights of the rank.
  std::vector<int> usual_part(int rank) const {
    std::vector<int> best;
    for (const auto& [part, count] : weights_) {
      const bool has = std::ranges::binary_search(part, rank);
      if (has && (best.empty() || count > weights_.at(best))) best = part;
    }
    return best;
  }

  /// The ranks hold different shards, and those of the usual groups the same ones.
  bool is_of_other_group(const ReplicaDifference& made) const {
    constexpr size_t kMore = 2;  // times as many weights
    if (made.cause != ReplicaCause::kValue || made.what != ReplicaKind::kParameter || !differs_mostly(made)) return false;
    const auto at = model_.find(*session_.graph(made.tensor.rank, made.tensor.graph), made.tensor.node);
    const std::vector<int>* const part = at ? model_.values()[*at].part_of(made.tensor.rank) : nullptr;
    const auto own = part == nullptr ? weights_.end() : weights_.find(*part);
    if (own == weights_.end()) return false;
    return std::ranges::all_of(*part, [&](int rank) {
      const std::vector<int> usual = usual_part(rank);
      return usual != *part && weights_.at(usual) >= kMore * own->second && holds_the_same(made, rank, usual);
    });
  }

  /// In later steps, the weight differs for the same reason.
  bool is_same_weight(const ReplicaDifference& later, const ReplicaDifference& known) const {
    if (later.cause != ReplicaCause::kValue || later.what != ReplicaKind::kParameter || !later.arguments.empty()) return false;
    const std::vector<int> ranks = all_ranks(known);
    return session_.node(later.tensor).name == session_.node(known.tensor).name && std::ranges::includes(ranks, all_ranks(later));
  }

  bool holds_the_same(const ReplicaDifference& made, int rank, const std::vector<int>& usual) const {
    const std::optional<TensorId> own = seen_on(made, rank);
    return own && std::ranges::all_of(usual, [&](int other) {
      const std::optional<TensorId> theirs = seen_on(made, other);
      return other == rank || (theirs && same_value(session_, *own, *theirs, buffers_));
    });
  }

  std::optional<TensorId> seen_on(const ReplicaDifference& made, int rank) const {
    const Graph* const graph = session_.graph(rank, made.seen.graph);
    const Node* const node = graph == nullptr ? nullptr : graph->find(session_.node(made.seen).name);
    if (node == nullptr) return std::nullopt;
    TensorId id = made.seen;
    id.rank = rank;
    id.node = node->id;
    return id;
  }

  void add_names(const std::vector<int>& part, std::set<std::string>& names) const {
    const auto known = names_.find(part);
    if (known != names_.end()) names.insert(known->second.begin(), known->second.end());
  }

  static std::string listed(const std::set<std::string>& names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
    return out;
  }

  void join(const ReplicaDifference& from, ReplicaDifference& into) const {
    add_ranks(all_ranks(from), &into);
    const auto add = [&](const TensorId& id, std::vector<TensorId>& list) {
      const std::string_view name = session_.node(id).name;
      const auto is_it = [&](const TensorId& known) { return session_.node(known).name == name; };
      if (!is_it(into.tensor) && std::ranges::none_of(list, is_it)) list.push_back(id);
    };
    add(from.tensor, into.also);
    for (const TensorId& id : from.also) add(id, into.also);
    for (const TensorId& id : from.reached) add(id, into.reached);
    std::vector<int64_t> steps;
    std::ranges::set_union(into.steps, from.steps, std::back_inserter(steps));
    into.steps = std::move(steps);
  }

  Session& session_;
  const ReplicaModel& model_;
  ReplicaBuffers& buffers_;
  std::map<std::vector<int>, size_t> weights_;               // by the ranks of a group
  std::map<std::vector<int>, std::set<std::string>> names_;  // of the groups
};

}  // namespace

void name_other_groups(Session& session, const ReplicaModel& model, ReplicaBuffers& buffers, ReplicasResult* result) {
  if (!result->differences.empty()) GroupFinder(session, model, buffers).run(*result);
}

}  // namespace msdbg
