// Binary search over the steps of a run.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/follow.h"
#include "msdbg/in_place.h"

namespace msdbg {
namespace {

/// The search on one rank. Here, steps are indexes into `steps_`.
class Halving {
 public:
  Halving(Session& session, const FollowTarget& target, const Predicate& predicate, const FollowOptions& options, int rank)
      : session_(session), target_(target), options_(options), watch_(watch_predicate(predicate)) {
    watch_.on = target.on;
    watch_.inputs = target.inputs;
    watch_.outputs = target.outputs;
    watch_.slot = target.slot;
    found_.rank = rank;
  }

  Result<BisectRank> run(bool* interrupted) {
    for (int64_t step : rank_steps()) {
      if (options_.steps.contains(step)) steps_.push_back(step);
    }
    found_.steps = steps_.size();
    size_t low = 0, high = steps_.size();  // the answer is in [low, high]; high means that no step qualifies
    while (low < high && status_.ok()) {
      const std::optional<size_t> at = decided_near((low + high) / 2, low, high);
      if (!at) break;
      if (state(*at) == InputState::kBad) high = *at;
      else low = *at + 1;
    }
    if (high < steps_.size()) found_.first = steps_[high];
    for (size_t at = low; at < high; ++at) found_.open.push_back(steps_[at]);
    check_after(high);
    check_before(high);
    if (interrupt_requested() || status_.code() == Code::kInterrupted) {
      *interrupted = true;
    } else if (!status_.ok()) {
      return status_;
    }
    return std::move(found_);
  }

 private:
  /// Steps in which a graph of the target ran.
  std::vector<int64_t> rank_steps() const {
    std::vector<int64_t> steps;
    std::vector<const Graph*> seen;
    for (const NodeRef& ref : target_.nodes) {
      if (ref.graph->rank() != found_.rank || std::find(seen.begin(), seen.end(), ref.graph) != seen.end()) continue;
      seen.push_back(ref.graph);
      const std::vector<int64_t> own = session_.steps(ref.graph->rank(), ref.graph->id());
      steps.insert(steps.end(), own.begin(), own.end());
    }
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    return steps;
  }

  /// The index in [low, high) nearest to `middle` whose state can be determined.
  std::optional<size_t> decided_near(size_t middle, size_t low, size_t high) {
    for (size_t distance = 0; distance < high - low; ++distance) {
      for (const bool up : {true, false}) {
        if (distance == 0 && !up) continue;
        if (up ? middle + distance >= high : middle < low + distance) continue;
        const size_t at = up ? middle + distance : middle - distance;
        if (state(at) != InputState::kUnknown) return at;
        if (!status_.ok() || interrupt_requested()) return std::nullopt;
      }
    }
    return std::nullopt;
  }

  InputState state(size_t at) {
    const auto known = states_.find(at);
    if (known != states_.end()) return known->second;
    const InputState made = look_at(steps_[at]);
    if (made == InputState::kUnknown && status_.ok()) found_.skipped.push_back(steps_[at]);
    return states_[at] = made;
  }

  InputState look_at(int64_t step) {
    const IntSet one = IntSet::of(step), rank = IntSet::of(found_.rank);
    const std::vector<TensorId> tensors = target_tensors(session_, target_, one, rank);
    if (tensors.empty()) return InputState::kUnknown;
    CheckOptions options = check_options(options_);
    options.steps = one;
    options.ranks = rank;
    options.progress = {};
    const Result<CheckResult> checked = check(session_, std::span(&watch_, 1), options);
    if (!checked) {
      status_ = checked.status();
      return InputState::kUnknown;
    }
    if (checked->interrupted) {
      status_ = Status(Code::kInterrupted, "bisect: interrupted");
      return InputState::kUnknown;
    }
    if (options_.cancelled && options_.cancelled()) {
      status_ = Status(Code::kInterrupted, "bisect: cancelled");
      return InputState::kUnknown;
    }
    BisectProbe probe;
    probe.step = step;
    probe.tensors = checked->coverage.tensors;
    found_.reads += checked->coverage.tensors - checked->coverage.from_cache;
    for (const Hit& hit : checked->hits) probe.holds.push_back(hit.tensor);
    if (!checked->hits.empty()) {
      probe.state = InputState::kBad;
      probe.stats = checked->hits.front().stats;
    } else {
      probe.undecided = checked->not_checked.size();
      if (!checked->not_checked.empty()) probe.reason = checked->not_checked.front().reason;
      if (probe.undecided == 0) probe.state = InputState::kGood;
      if (Result<Stats> stats = session_.stats(tensors.front())) probe.stats = std::move(*stats);
    }
    const InputState state = probe.state;
    found_.probes.push_back(std::move(probe));
    if (options_.progress) options_.progress(found_.probes.size(), 0, 0);
    return state;
  }

  /// The step after the answer must agree with it.
  void check_after(size_t answer) {
    if (!status_.ok() || answer >= steps_.size()) return;
    const std::optional<size_t> behind = decided_near(answer + 1, answer + 1, steps_.size());
    if (!behind || state(*behind) == InputState::kBad) return;
    found_.monotone = false;
    found_.counterexample = steps_[*behind];
  }

  /// The search has checked the step before the answer, unless nothing is known about it.
  void check_before(size_t answer) {
    for (const auto& [at, state] : states_) {
      if (at < answer && state == InputState::kGood) found_.last_before = steps_[at];
    }
  }

  Session& session_;
  const FollowTarget& target_;
  const FollowOptions& options_;
  Watchpoint watch_;
  std::vector<int64_t> steps_;
  std::map<size_t, InputState> states_;
  BisectRank found_;
  Status status_;
};

/// When in its step a tensor is made: data and constants come first, a parameter with its last update.
uint32_t place_in_step(const Session& session, const TensorId& id) {
  const Node& node = session.node(id);
  if (node.kind == NodeKind::kOperator) return node.order + 1;
  const Graph& graph = *session.graph(id.rank, id.graph);
  uint32_t place = 0;
  for (const Use& use : graph.effective_users(id.node)) {
    const Node& user = graph.node(use.node);
    if (std::ranges::count(updated_slots(graph, user), use.slot) > 0) place = std::max(place, user.order + 1);
  }
  return place;
}

/// The ranks where it holds first.
std::vector<int> first_ranks(const Session& session, std::span<const BisectRank> ranks) {
  std::map<std::pair<int64_t, uint32_t>, std::vector<int>> found;  // by step and place in it
  for (const BisectRank& rank : ranks) {
    if (!rank.first) continue;
    const auto probe = std::ranges::find(rank.probes, *rank.first, &BisectProbe::step);
    uint32_t place = UINT32_MAX;
    for (const TensorId& id : probe->holds) place = std::min(place, place_in_step(session, id));
    found[{*rank.first, place}].push_back(rank.rank);
  }
  return found.empty() ? std::vector<int>() : found.begin()->second;
}

}  // namespace

Result<BisectResult> bisect(Session& session, const FollowTarget& target, const Predicate& predicate, const FollowOptions& options) {
  BisectResult result;
  result.target = target.text;
  result.predicate = predicate.text;
  std::string skipped;
  for (const int rank : session.ranks()) {
    const bool has = std::any_of(target.nodes.begin(), target.nodes.end(), [&](const NodeRef& ref) { return ref.graph->rank() == rank; });
    if (!has || !options.ranks.contains(rank)) continue;
    Result<BisectRank> found = Halving(session, target, predicate, options, rank).run(&result.interrupted);
    if (!found) return found.status();
    if (found->probes.empty() && !result.interrupted) {
      skipped += fmt::format("{}rank {}: {} steps looked through", skipped.empty() ? "" : ", ", rank, found->steps);
      continue;
    }
    result.ranks.push_back(std::move(*found));
    if (result.interrupted) break;
  }
  if (result.ranks.empty() && !result.interrupted) {
    return Status(Code::kNotFound, fmt::format("{} was not dumped in any of these steps ({}); the command why gives the reason",
                                               target.text, skipped.empty() ? "none of the requested ranks has it" : skipped));
  }
  if (result.ranks.size() > 1) result.first_ranks = first_ranks(session, result.ranks);
  return result;
}

}  // namespace msdbg
