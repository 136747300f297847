// Walks the steps in order of execution and finds the values that are not the same on the ranks that must share them.
#include "msdbg/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "analysis/cause_kind.h"
#include "analysis/parameter_writes.h"
#include "analysis/replica_apart.h"
#include "analysis/replica_arguments.h"
#include "analysis/replica_calls.h"
#include "analysis/replica_coverage.h"
#include "analysis/replica_lag.h"
#include "analysis/replica_moves.h"
#include "analysis/replica_other_group.h"
#include "analysis/replica_parts.h"
#include "analysis/replica_sets.h"
#include "analysis/replica_sides.h"
#include "analysis/replica_story.h"

namespace msdbg {
namespace {

using Phase = Sighting::Phase;

class Finder {
 public:
  /// `result` has the ranks and steps to compare.
  Finder(Session& session, const FollowOptions& options, ReplicasResult result)
      : session_(session), options_(options), model_(session, options.ranks), parts_(model_), apart_(model_, parts_), writes_(session),
        result_(std::move(result)), coverage_(session, result_, model_.values().size()) {}

  Result<ReplicasResult> run() {
    ReplicaReader reader(session_, model_, options_, &result_);
    for (size_t i = 0; i < result_.steps.size(); ++i) {
      const Status status = look_at(result_.steps[i], reader);
      if (status.code() == Code::kInterrupted) {
        result_.interrupted = true;
        break;
      }
      if (!status.ok()) return status;
      if (options_.progress) options_.progress(i + 1, result_.steps.size(), result_.coverage.bytes);
    }
    finish();
    return std::move(result_);
  }

 private:
  ReplicaValue& value(size_t index) { return model_.values()[index]; }

  Status look_at(int64_t step, ReplicaReader& reader) {
    Result<std::vector<Sighting>> seen = reader.read(step, false);
    if (!seen) return seen.status();
    parts_.decide(*seen, step);
    if (needs_inputs(*seen)) {
      Result<std::vector<Sighting>> inputs = reader.read(step, true);
      if (!inputs) return inputs.status();
      seen->insert(seen->end(), std::make_move_iterator(inputs->begin()), std::make_move_iterator(inputs->end()));
      std::ranges::stable_sort(*seen, {}, &Sighting::order);
      parts_.decide(*seen, step);
    }
    parts_.widen(session_, *seen, step);
    sound_.assign(model_.values().size() * result_.ranks.size(), false);
    const size_t known = result_.differences.size();
    for (const Sighting& sighting : *seen) judge(sighting, step);
    for (size_t i = known; i < result_.differences.size(); ++i) find_odd_state(i);
    lag_.end_step(*seen, step, step == result_.steps.back());
    return {};
  }

  // ---- what the inputs are read for ----

  bool needs_inputs(const std::vector<Sighting>& seen) {
    if (!odd_.empty()) return true;
    // NaN makes all copies equal at the end of a step that may have begun with one odd copy.
    bool broke = false;
    for (const Sighting& sighting : seen) {
      const auto holds_nan = [](const auto& copy) { return copy.second.print && copy.second.print->bits.nan; };
      if (std::ranges::any_of(sighting.copies, holds_nan)) broke = broken_.insert(sighting.value).second || broke;
    }
    if (broke) return true;
    std::vector<bool> own(model_.values().size());
    for (const Sighting& sighting : seen) {
      own[sighting.value] = true;
      const ReplicaValue& given = value(sighting.value);
      for (const std::vector<int>& part : given.parts) {
        if (equal_ranks(sighting, part).size() > 1) return true;
      }
    }
    for (size_t i = 0; i < model_.values().size(); ++i) {
      if (own[i] || !value(i).is_parameter() || value(i).nodes.size() < 2) continue;
      if (value(i).parts.empty() || std::ranges::any_of(value(i).parts, [](const auto& part) { return part.size() > 1; })) return true;
    }
    return false;
  }

  // ---- differences ----

  void judge(const Sighting& sighting, int64_t step) {
    ReplicaValue& given = value(sighting.value);
    if (given.parts.empty()) return coverage_.count_alone(given, sighting);
    if (any_apart_ && !given.is_parameter() && !given.apart && std::ranges::any_of(given.from, [&](size_t from) { return value(from).apart; }))
      leave_alone(sighting.value);  // it was computed from equal weights before
    if (given.apart) return see_apart(sighting, step);
    const SharedList<std::vector<int>> parts = given.parts;  // leave_out() changes them
    for (const std::vector<int>& part : parts) {
      if (part.size() < 2) continue;
      Parts equal = equal_ranks(sighting, part);
      const bool wide = parts_.is_wide(sighting.value, part);
      if (wide && (equal.size() > 2 || (!equal.empty() && equal.front().size() == 1))) continue;  // the groups tell
      coverage_.count(given, sighting, part, step);
      apart_.see(sighting, part, equal, step);
      if (equal.empty() || (equal.size() == 1 && equal.front().size() < 2)) continue;
      if (equal.size() == 1) {
        heal(sighting, equal.front());
        if (wide) return;
        continue;
      }
      if (drifts(given) && equal.front().size() == 1) {
        different_.insert({sighting.value, part});
        add_drift(sighting, equal, step);
        continue;
      }
      if (belongs_to_each_rank(sighting, equal, step)) return set_apart(sighting, parts, step);
      if (was_constant(sighting, step) && parts_.split_like_others(sighting.value, equal, step)) return take_back(sighting.value);
      if (given.nameless && is_even(equal) && was_constant(sighting, step)) {
        if (equal.front().size() > 1) parts_.split(sighting.value, equal, step);
        else model_.leave_out(sighting.value, fmt::format("the same constants on all ranks at first: they differ from step {} on", step));
        return take_back(sighting.value);
      }
      if (coverage_.never_ended(given, sighting, part, step) || coverage_.renumbered(given, sighting, part, equal)) continue;
      different_.insert({sighting.value, part});
      bool decided = equal[0].size() > equal[1].size() && equal[0].size() > 1;
      if (!decided) {
        // Nobody can tell who is odd; the lowest rank stands for the others.
        std::ranges::sort(equal);
        decided = put_nan_last(sighting, equal);
        const auto is_known = [&](const std::vector<int>& ranks) { return known_fault(sighting, ranks.front()).has_value(); };
        // What is wrong already stays so, and nothing is read for it.
        if (!decided && std::ranges::any_of(equal, is_known)) std::ranges::stable_partition(equal, std::not_fn(is_known));
        else if (!decided) decided = put_far_larger_last(session_, sighting, equal);
      }
      for (size_t i = 1; i < equal.size(); ++i) add_difference(sighting, equal[0], equal[i], decided, step);
      heal(sighting, equal[0]);
      if (wide) return;
    }
  }

  /// An assumption that the values of every rank contradict.
  bool belongs_to_each_rank(const Sighting& sighting, const Parts& equal, int64_t step) {
    const ReplicaValue& given = value(sighting.value);
    const std::optional<int64_t> decided = parts_.decided(sighting.value);
    if (!given.assumed || !decided || step == *decided || (is_single_number(sighting) && !given.of_single_number)) return false;
    if (equal.front().size() > 1) return is_even(equal) && given.is_parameter() && model_.only_pairs_exchange();
    // Where other ranks have had another one before, two are no pair that nobody can judge.
    return equal.size() > 2 || given.unreduced || (given.parts.size() > 1 && any_apart_);
  }

  void set_apart(const Sighting& sighting, const SharedList<std::vector<int>>& parts, int64_t step) {
    const size_t index = sighting.value;
    for (const std::vector<int>& part : parts) apart_.see(sighting, part, equal_ranks(sighting, part), step);
    if (apart_.find(index) == nullptr && !model_.only_pairs_exchange()) {
      model_.leave_out(index, apart_.by_chance(index, step));
      return take_back(index);
    }
    if (!any_apart_) {
      for (size_t i = 0; i < model_.values().size(); ++i) {
        if (value(i).like) states_[*value(i).like].push_back(i);
      }
    }
    leave_alone(index);
    for (const size_t state : states_[index]) leave_alone(state);
  }

  void leave_alone(size_t index) {
    value(index).apart = any_apart_ = true;
    model_.set_alone(index);
    take_back(index);
  }

  /// Whether it stays so.
  void see_apart(const Sighting& sighting, int64_t step) {
    const ReplicaApart::Weight* const weight = apart_.find(sighting.value);
    if (weight == nullptr || sighting.is_input()) return;  // or what belongs to one
    coverage_.count(value(sighting.value), sighting, weight->part, step);
    for (const std::vector<int>& part : Parts(weight->groups)) apart_.see(sighting, part, equal_ranks(sighting, part), step);
  }

  /// Of an assumption that rests on an earlier step.
  bool was_constant(const Sighting& sighting, int64_t step) {
    const std::optional<int64_t> decided = parts_.decided(sighting.value);
    if (!value(sighting.value).assumed || (decided && *decided == step) || is_single_number(sighting)) return false;
    return was_constant_before(session_, sighting, result_.steps, step);
  }

  /// Drops what an earlier step said of such a value: that some ranks were equal there proves nothing.
  void take_back(size_t index) {
    const auto is_it = [&](const TensorId& id) {
      const auto node = value(index).nodes.find(id.rank);
      return node != value(index).nodes.end() && node->second.node == id.node;
    };
    for (size_t i = 0; i < of_fault_.size(); ++i) {
      if (of_fault_[i].erase(index) == 0) continue;
      std::erase_if(result_.differences[i].also, is_it);
      std::erase_if(result_.differences[i].reached, is_it);
    }
    std::erase_if(odd_, [&](const auto& entry) { return entry.first.first == index; });
  }

  bool drifts(const ReplicaValue& given) { return given.drifts || (given.like && value(*given.like).drifts); }

  /// All such weights and the states that belong to them are one fault.
  void add_drift(const Sighting& sighting, const Parts& equal, int64_t step, ReplicaCause cause = ReplicaCause::kUnreduced) {
    std::vector<int> odd;
    for (const std::vector<int>& part : equal) odd.insert(odd.end(), part.begin(), part.end());
    std::ranges::sort(odd);
    const std::vector<int> first = {odd.front()};
    odd.erase(odd.begin());
    const auto other = std::ranges::find_if(odd, [&](int rank) {
      return std::ranges::none_of(equal, [&](const auto& part) {
        return std::ranges::find(part, rank) != part.end() && std::ranges::find(part, first.front()) != part.end();
      });
    });
    if (!drift_) {
      ReplicaDifference made;
      made.cause = cause;
      made.tensor = value_of(sighting, *other);
      made.seen = sighting.tensor(*other);
      made.expected = sighting.tensor(first.front());
      made.odd = odd;
      made.others = first;
      made.decided = false;
      made.assumed = true;
      made.updated = value(sighting.value).updated;
      compare_replicas(session_, buffers_, &made);
      drift_ = result_.differences.size();
      result_.differences.push_back(std::move(made));
      of_fault_.emplace_back().insert(sighting.value);
    } else if (of_fault_[*drift_].insert(sighting.value).second) {
      ReplicaDifference& known = result_.differences[*drift_];
      const bool weight = value(sighting.value).drifts || value(sighting.value).what == ReplicaKind::kParameter;
      (weight ? known.also : known.reached).push_back(value_of(sighting, *other));
    }
    note_odd(sighting, odd, *drift_, step);
  }

  /// The value that a sighting shows, not the operator that took it.
  TensorId value_of(const Sighting& sighting, int rank) {
    TensorId id = sighting.tensor(rank);
    if (sighting.is_input() && !value(sighting.value).nameless) {
      id.node = value(sighting.value).nodes.at(rank).node;
      id.slot = {};
    }
    return id;
  }

  void note_odd(const Sighting& sighting, const std::vector<int>& odd, size_t fault, int64_t step) {
    std::vector<int64_t>& steps = result_.differences[fault].steps;
    if (steps.empty() || steps.back() != step) steps.push_back(step);
    for (const int rank : odd) odd_[{sighting.value, rank}] = fault;
  }

  size_t place_of(size_t value, int rank) const {
    const auto at = std::ranges::lower_bound(result_.ranks, rank);
    return value * result_.ranks.size() + static_cast<size_t>(at - result_.ranks.begin());
  }

  void heal(const Sighting& sighting, const std::vector<int>& ranks) {
    for (const int rank : ranks) {
      sound_[place_of(sighting.value, rank)] = true;
      const auto at = odd_.find({sighting.value, rank});
      if (at != odd_.end()) odd_.erase(at);
    }
  }

  /// The fault that made the rank odd before, if what was seen follows from it.
  std::optional<size_t> known_fault(const Sighting& sighting, int rank) {
    const auto known = [&](size_t index) -> std::optional<size_t> {
      const auto at = odd_.find({index, rank});
      return at == odd_.end() ? std::nullopt : std::optional(at->second);
    };
    const auto& [graph, phase, order, io, execution, slot] = sighting.order;
    const bool computed = !sighting.is_input() && (!value(sighting.value).is_parameter() || phase == Phase::kEnd);
    const bool written = sighting.is_input() && io == 2;
    if (value(sighting.value).is_parameter() || value(sighting.value).nameless || sighting.is_input()) {
      if (const auto fault = known(sighting.value)) return fault;
    }
    if (!computed && !written) return std::nullopt;
    for (const size_t from : value(sighting.value).from) {
      if (const auto fault = known(from)) return fault;
    }
    return std::nullopt;
  }

  void add_difference(const Sighting& sighting, const std::vector<int>& others, const std::vector<int>& odd, bool decided, int64_t step) {
    lag_.differs(sighting, odd, others, step);
    std::optional<size_t> fault;
    for (const int rank : odd) {
      if (!fault) fault = known_fault(sighting, rank);
    }
    const TensorId id = value_of(sighting, odd.front());
    if (!fault) {
      ReplicaDifference made;
      made.cause = cause_of(sighting, odd.front());
      made.tensor = id;
      made.seen = sighting.tensor(odd.front());
      made.expected = sighting.tensor(others.front());
      made.odd = odd;
      made.others = others;
      made.decided = decided;
      made.assumed = value(sighting.value).assumed;
      made.updated = value(sighting.value).updated;
      made.what = value(sighting.value).what;
      if (made.cause == ReplicaCause::kUnknown) made.not_seen = not_seen(sighting, odd.front());
      const std::optional<size_t> weight = made.cause == ReplicaCause::kUnknown ? shown_weight(sighting, odd.front()) : std::nullopt;
      if (weight) blame(*weight, odd.front(), &made);
      compare_replicas(session_, buffers_, &made);
      if (weight && session_.node(made.seen).op == "t") {
        for (DifferentElement& element : made.first) std::ranges::reverse(element.at);
      }
      // A rate that was twice as large from the start was chosen.
      if (made.cause == ReplicaCause::kSetting && step == result_.steps.front()) made.single_flip = false;
      find_other_arguments(session_, writes_, &made);
      fault = same_weights(result_.differences, made);
      if (fault) {
        if (of_fault_[*fault].insert(sighting.value).second) result_.differences[*fault].also.push_back(id);
      } else {
        compare_moves(session_, buffers_, &made);
        fault = result_.differences.size();
        result_.differences.push_back(std::move(made));
        of_fault_.emplace_back().insert(sighting.value);
        if (weight) {
          of_fault_[*fault].insert(*weight);
          for (const int rank : odd) odd_[{*weight, rank}] = *fault;
        }
      }
    } else if (of_fault_[*fault].insert(sighting.value).second) {
      result_.differences[*fault].reached.push_back(id);
    }
    note_odd(sighting, odd, *fault, step);
  }

  ReplicaCause cause_of(const Sighting& sighting, int rank) {
    const ReplicaValue& given = value(sighting.value);
    const auto is_sound = [&](size_t from) { return sound_[place_of(from, rank)]; };
    if (given.is_parameter()) {
      if (is_setting(given, sighting)) return ReplicaCause::kSetting;
      // It was equal earlier in this step: the update wrote something else, unless its output shows that it did not.
      const bool written = given.updated && is_sound(sighting.value);
      return written && std::ranges::none_of(given.updates, is_sound) ? ReplicaCause::kUnknown : ReplicaCause::kValue;
    }
    if (given.collective) return ReplicaCause::kCollective;
    if (sighting.is_input() || given.nameless) return ReplicaCause::kValue;
    return std::ranges::all_of(given.from, is_sound) ? ReplicaCause::kOperator : ReplicaCause::kUnknown;
  }

  /// The weight of which the sighting is a view, if no file shows the weight itself as it was then. A view computes nothing that could be wrong.
  std::optional<size_t> shown_weight(const Sighting& sighting, int rank) {
    const ReplicaValue& given = value(sighting.value);
    const NodeRef& node = given.nodes.at(rank);
    if (given.is_parameter() || sighting.is_input() || given.from.size() != 1 || !passes_elements(to_lower(node.graph->node(node.node).op)))
      return std::nullopt;
    const size_t from = given.from.front();
    const bool odd = value(from).is_parameter() && value(from).nodes.contains(rank) && !sound_[place_of(from, rank)];
    return odd ? std::optional(from) : std::nullopt;
  }

  void blame(size_t weight, int rank, ReplicaDifference* made) {
    made->cause = ReplicaCause::kValue;
    made->what = value(weight).what;
    made->tensor.node = value(weight).nodes.at(rank).node;
    made->tensor.slot = {};
    made->updated = value(weight).updated;
    made->not_seen.clear();
  }

  std::vector<std::string> not_seen(const Sighting& sighting, int rank) {
    std::vector<std::string> out;
    for (const size_t from : value(sighting.value).from) {
      if (value(from).is_parameter() && from != sighting.value && !sound_[place_of(from, rank)]) out.emplace_back(value(from).name);
    }
    return out;
  }

  /// Of the states that an update took, those that are equal after it were equal before. If one is left, the difference came in with it.
  void find_odd_state(size_t index) {
    ReplicaDifference& made = result_.differences[index];
    if (made.cause != ReplicaCause::kUnknown || !made.updated || !made.arguments.empty()) return;
    const Graph& graph = *session_.graph(made.tensor.rank, made.tensor.graph);
    std::vector<std::string> odd = made.not_seen;
    std::erase_if(odd, [&](const std::string& name) {
      const Node* const state = graph.find(name);
      const auto at = state == nullptr ? std::nullopt : model_.find(graph, state->id);
      return at && sound_[place_of(*at, made.odd.front())];
    });
    if (odd.size() != 1) return;
    const std::string& name = odd.front();
    const auto state = std::ranges::find_if(made.reached, [&](const TensorId& id) { return session_.node(id).name == name; });
    if (state == made.reached.end()) return;
    tell_of_state(session_, buffers_, *state, &made);
  }

  // ---- together ----

  /// Weights that every rank has another one of are one fault, or none.
  void finish_apart() {
    apart_.end();
    const bool everything = apart_.is_everything();
    const uint64_t staying = everything || !any_apart_ ? 0 : apart_.staying(session_);
    for (size_t i = 0; i < result_.differences.size(); ++i) judge_pair(i, everything);
    std::vector<std::pair<Sighting::Order, size_t>> weights;
    for (size_t i = 0; i < model_.values().size(); ++i) {
      if (!value(i).apart) continue;
      if (const ReplicaApart::Weight* const weight = apart_.find(i)) weights.emplace_back(weight->first.order, i);
      else leave_out(i, model_.reason_apart());
    }
    std::ranges::sort(weights);
    for (const auto& [seen, others, odd, at] : apart_.missed()) add_difference(seen, others, odd, true, at);
    for (const auto& [order, index] : weights) {
      const ReplicaApart::Weight& weight = *apart_.find(index);
      if (!everything && staying == 0) {
        leave_out(index, apart_.reason(index));
        continue;
      }
      value(index).parts = Parts(weight.groups);
      for (const std::vector<int>& group : weight.groups) different_.insert({index, group});
      add_drift(weight.first, weight.equal, weight.first.step, ReplicaCause::kApart);
      if (weight.groups.size() > 1) add_ranks(weight.part, &result_.differences[*drift_]);
      result_.differences[*drift_].steps = weight.steps;
      result_.differences[*drift_].staying = staying;
    }
  }

  /// Of two ranks, one that has other weights all at once looks like two that train by themselves, until they are equal again.
  void judge_pair(size_t fault, bool everything) {
    ReplicaDifference& made = result_.differences[fault];
    const bool pair = !made.decided && made.odd.size() == 1 && made.others.size() == 1 && differs_mostly(made);
    const bool weight = made.cause == ReplicaCause::kValue && made.what == ReplicaKind::kParameter && !made.moved;
    if (!pair || !weight) return;
    std::vector<size_t> weights;
    std::ranges::copy_if(of_fault_[fault], std::back_inserter(weights), [&](size_t index) { return apart_.find(index) != nullptr; });
    if (everything) made.cause = ReplicaCause::kApart;
    const auto is_again = [&](size_t index) { return apart_.find(index)->again.has_value(); };
    if (weights.empty() || !std::ranges::all_of(weights, is_again)) return;
    for (const size_t index : of_fault_[fault]) leave_out(index, apart_.reason(weights.front()));
    of_fault_[fault].clear();
  }

  void leave_out(size_t index, const std::string& reason) {
    model_.leave_out(index, reason);
    coverage_.take_back(index);
    different_.erase(different_.lower_bound({index, {}}), different_.lower_bound({index + 1, {}}));
  }

  void finish() {
    finish_apart();
    list_sets(model_, different_, &result_);
    size_t at = 0;
    std::erase_if(result_.differences, [&](const ReplicaDifference&) { return of_fault_[at++].empty(); });  // taken back
    lag_.join(result_.differences);
    name_other_groups(session_, model_, buffers_, &result_);
    if (!result_.interrupted) find_other_calls(session_, &result_);
    join_stories(session_, buffers_, &result_.differences);
    explain_nothing(&result_);
  }

  Session& session_;
  const FollowOptions& options_;
  ReplicaModel model_;
  ReplicaParts parts_;
  ReplicaApart apart_;
  bool any_apart_ = false;
  std::map<size_t, std::vector<size_t>> states_;  // by weight, once any weight is apart
  ReplicaLag lag_;
  ParameterWrites writes_;
  ReplicasResult result_;
  ReplicaCoverage coverage_;
  ReplicaBuffers buffers_;
  std::map<std::pair<size_t, int>, size_t> odd_;       // value and rank -> index of the fault
  std::optional<size_t> drift_;                        // the difference of cause kUnreduced
  std::vector<bool> sound_;                            // by place_of(): seen to be equal in this step
  std::vector<std::set<size_t>> of_fault_;             // values
  DifferentParts different_;
  std::set<size_t> broken_;                            // values with a NaN in a step before
};

}  // namespace

Result<ReplicasResult> replicas(Session& session, const FollowOptions& options) {
  ReplicasResult result = chosen_replicas(session, options);
  if (!result.nothing.empty()) return result;
  return Finder(session, options, std::move(result)).run();
}

}  // namespace msdbg
