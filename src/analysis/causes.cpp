// Which findings follow from which: along the data flow where NaN and Inf went, and where a learning rate, dead units, vanishing gradients
// or a loss scale explain others.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "analysis/cause_drafts.h"
#include "analysis/cause_graph.h"
#include "analysis/cause_kind.h"
#include "analysis/cause_origin.h"
#include "analysis/causes.h"
#include "analysis/collectives.h"
#include "msdbg/in_place.h"

namespace msdbg {
namespace {

/// Rules and conditions by what their findings mean.
using Names = std::span<const std::string_view>;
constexpr std::string_view kStill[] = {"unchanged-weight", "update-too-small", "weight_not_changed", "weight_change_too_small",
                                       "recommended-weight-not-changed", "recommended-weight-change-too-small"};
constexpr std::string_view kMoved[] = {"update-too-large", "weight_change_too_large", "recommended-weight-change-too-large"};
constexpr std::string_view kGrown[] = {"value-jump",       "loss-explosion",   "exploding-gradient", "dtype-saturation",
                                       "tensor_too_large", "weight_too_large", "gradient_too_large", "gradient_exploding",
                                       "huge-weight"};
constexpr std::string_view kHuge = "huge-weight";
constexpr std::string_view kSaturated[] = {"saturated-tanh", "saturated-sigmoid"};
constexpr std::string_view kZero[] = {"zero-gradient", "tensor_all_zero", "recommended-tensor-all-zero"};
constexpr std::string_view kFaint[] = {"vanishing-gradient", "gradient_vanishing", "recommended-gradient-vanishing", "zero-gradient",
                                       "float16-subnormal", "subnormal-share"};

constexpr std::string_view kOverflow[] = {"tensor_overflow", "recommended-tensor-overflow", "nan-or-inf", "dtype-saturation",
                                          "nan-swallowed"};

/// A step replaces what was learned when it moves weights by more than this share of their size...
constexpr double kTooFar = 0.3;
/// ...and it is the rate, not the gradient, if a gradient is no larger than this share of the weights, which any usual rate bears...
constexpr double kUsualGradient = 1;
/// ...or where the optimizer evens out the size of gradients, if elements move by no more than a few times the rate.
constexpr double kNormalisedSteps = 3;

/// A weight that is this many times too large makes overflows and logarithms of 0, where sound ones make none.
constexpr double kFarTooLarge = 1000;

bool is_any(Names names, const Hit& hit) { return std::find(names.begin(), names.end(), hit.rule) != names.end(); }

class CauseSearch {
 public:
  CauseSearch(Session& session, const OriginResult& origins, CheckResult& result)
      : session_(session), hits_(result.hits), result_(result), origins_(session, origins), put_in_(origins.put_in) {
    of_hit_.resize(hits_.size());
  }

  void run() {
    follow_origins();
    follow_infinite_moments();
    follow_jumps_of_data();
    follow_loss_scales();
    follow_rates();
    follow_dead_units();
    follow_vanishing();
    follow_replicas();
    follow_grown_parameters();
    follow_huge_weights();
    drafts_.join_ranks(session_, from_origins_, of_hit_);
    drafts_.finish(session_, of_hit_, &result_);
  }

 private:
  // ---- NaN and Inf: along the ways that the search for origins found ----

  void follow_origins() {
    for (size_t i = 0; i < hits_.size(); ++i) {
      const Origin* origin = origins_.of(hits_[i].tensor);
      if (origin == nullptr || was_finite(hits_[i])) continue;
      Reason reason = reason_of(session_, *origin);
      if (const auto& brought = brought_by_others(*origin); !brought.empty()) {
        origin = brought.front();
        reason = reason_of(session_, *origin);
        if (const size_t more = brought.size() - 1; more > 0)
          reason.what += fmt::format("; also through {} more {}", more, more == 1 ? "collective" : "collectives");
      }
      of_hit_[i] = drafts_.add(reason.kind, origin->tensor, reason.what + shared_by(*origin), reason.evidence);
      CauseDraft& draft = drafts_[*of_hit_[i]];
      draft.shared = origins_.ranks(*origin).size() > 1;
      if (draft.cause.tensor == origin->tensor) draft.origin = origin;
    }
    from_origins_ = drafts_.size();
    take_out_what_was_put_in();
    // A parameter that a later step found broken has a finding of its own.
    for (size_t i = 0; i < hits_.size(); ++i) {
      const auto own =
          std::find_if(drafts_.begin(), drafts_.end(), [&](const CauseDraft& each) { return each.cause.tensor == hits_[i].tensor; });
      if (!of_hit_[i] && own != drafts_.end() && !was_finite(hits_[i])) of_hit_[i] = static_cast<size_t>(own - drafts_.begin());
    }
  }

  /// What a rank that is not here broke comes through many collectives, and is one cause.
  const std::vector<const Origin*>& brought_by_others(const Origin& origin) {
    const auto [at, fresh] = brought_.try_emplace(&origin);
    if (fresh) at->second = origins_.alike(origin);
    return at->second;
  }

  /// Findings about infinities that the program asked for are no faults: they leave the hits.
  void take_out_what_was_put_in() {
    constexpr std::string_view kWhat = "Inf that the program put in; what follows absorbed it";
    std::map<TensorId, const PutIn*> held;
    for (const PutIn& each : put_in_) {
      for (const TensorId& tensor : each.held_by) held.emplace(tensor, &each);
    }
    if (held.empty()) return;
    size_t kept = 0;
    for (size_t i = 0; i < hits_.size(); ++i) {
      const auto found = held.find(hits_[i].tensor);
      if (!of_hit_[i] && hits_[i].stats.inf_count() > 0 && is_any(kOverflow, hits_[i]) && found != held.end()) {
        result_.explained.push_back({std::move(hits_[i]), found->second->tensor, std::string(kWhat), found->second->argument});
        continue;
      }
      if (kept != i) hits_[kept] = std::move(hits_[i]);
      of_hit_[kept++] = of_hit_[i];
    }
    result_.total_hits -= hits_.size() - kept;
    hits_.resize(kept);
    of_hit_.resize(kept);
  }

  /// An optimizer that divides by a moment moves nothing where that has become infinite.
  void follow_infinite_moments() {
    std::map<TensorId, size_t> broken;
    for (size_t i = 0; i < hits_.size(); ++i) {
      if (of_hit_[i] && is_any(kOverflow, hits_[i])) broken.emplace(hits_[i].tensor, *of_hit_[i]);
    }
    if (broken.empty()) return;
    for (size_t i = 0; i < hits_.size(); ++i) {
      const TensorId& weight = hits_[i].tensor;
      if (of_hit_[i] || !is_any(kStill, hits_[i])) continue;
      const CauseGraph& graph = graph_of(weight);
      for (const NodeId updater : graph.updaters(weight.node)) {
        const Node& node = graph.graph().node(updater);
        for (const uint32_t slot : updated_slots(graph.graph(), node)) {
          TensorId state = weight;
          state.node = updated_parameter(graph.graph(), node, slot);
          const auto found = state.node == weight.node ? broken.end() : broken.find(state);
          if (found != broken.end()) of_hit_[i] = found->second;
        }
      }
    }
  }

  // ---- a batch far from those before ----

  void follow_jumps_of_data() {
    for (size_t i = 0; i < hits_.size(); ++i) {
      const Hit& anchor = hits_[i];
      const Node& node = session_.node(anchor.tensor);
      const bool data = node.kind == NodeKind::kParameter && !node.trainable && !in_category(node, Category::kWeight);
      if (anchor.rule != "value-jump" || of_hit_[i] || !data) continue;
      const CauseGraph& graph = graph_of(anchor.tensor);
      const NodeId start[] = {anchor.tensor.node};
      const std::vector<bool> reached = graph.after(start);
      of_hit_[i] = drafts_.add(CauseKind::kBadInput, anchor.tensor, "its values are far from those of earlier steps", message_of(anchor));
      take(*of_hit_[i], [&](const Hit& hit) {
        const bool grown = is_any(kGrown, hit) || is_any(kMoved, hit) || is_any(kSaturated, hit);
        return grown && same_graph(hit.tensor, anchor.tensor) && hit.tensor.step == anchor.tensor.step &&
               graph.holds(reached, hit.tensor.node);
      });
    }
  }

  // ---- a loss scale that never fits ----

  void follow_loss_scales() {
    for (size_t i = 0; i < hits_.size(); ++i) {
      const Hit& anchor = hits_[i];
      if (anchor.rule != "loss-scale-stuck" || of_hit_[i]) continue;
      const CauseGraph& graph = graph_of(anchor.tensor);
      const NodeId start[] = {anchor.tensor.node};
      const std::vector<bool> reached = graph.after(start);
      const size_t cause = drafts_.add(CauseKind::kLossScale, anchor.tensor, "the gradients overflow in every step under the loss scale", "");
      of_hit_[i] = cause;
      const auto follows = [&](const TensorId& id) {
        return same_graph(id, anchor.tensor) && id.step <= anchor.tensor.step && graph.holds(reached, id.node);
      };
      for (size_t k = 0; k < from_origins_; ++k) {
        if (follows(drafts_[k].cause.tensor) && session_.node(drafts_[k].cause.tensor).kind == NodeKind::kOperator) drafts_.explain(k, cause);
      }
      take(cause, [&](const Hit& hit) { return is_any(kStill, hit) && follows(hit.tensor); });
    }
  }

  // ---- a learning rate of 0, or one that is too large ----

  void follow_rates() {
    for (size_t i = 0; i < hits_.size(); ++i) {
      if (of_hit_[i] || !is_any(kStill, hits_[i])) continue;
      const auto rate = rate_of(hits_[i].tensor);
      if (rate && rate->value == 0) of_hit_[i] = drafts_.add(CauseKind::kRateZero, rate->source, "the learning rate is 0", "");
    }
    using Place = std::tuple<int64_t, int, int>;
    std::map<Place, std::vector<TensorId>> moved;
    for (size_t i = 0; i < hits_.size(); ++i) {
      const TensorId& id = hits_[i].tensor;
      if (!of_hit_[i] && is_any(kMoved, hits_[i])) moved[{id.step, id.rank, id.graph}].push_back(id);
    }
    std::set<std::tuple<int, int, NodeId>> told;
    for (const auto& [place, weights] : moved) follow_large_rate(weights, &told);
  }

  std::optional<LearningRate> rate_of(const TensorId& weight) {
    const CauseGraph& graph = graph_of(weight);
    for (const NodeId updater : graph.updaters(weight.node)) {
      if (auto rate = graph.rate(session_, updater, weight.step)) return rate;
    }
    return std::nullopt;
  }

  struct Move {
    double ratio;  ///< mean change / mean magnitude before
    bool by_rate;  ///< the rate alone is to blame
  };
  /// How far the last update moved a weight, if that is too far.
  std::optional<Move> moved_too_far(const TensorId& weight, const LearningRate& rate) {
    const auto before = rate.value > 0 ? graph_of(weight).before_update(session_, weight) : std::nullopt;
    if (!before) return std::nullopt;
    StatsRequest request;
    request.change = true;
    const auto stats = session_.stats(weight, *before, request);
    if (!stats || !(stats->prev_abs_mean > 0) || !(stats->diff_abs_mean > kTooFar * stats->prev_abs_mean)) return std::nullopt;
    const bool by_rate = rate.normalised ? stats->diff_abs_mean <= kNormalisedSteps * rate.value
                                         : stats->diff_abs_mean / rate.value <= kUsualGradient * stats->prev_abs_mean;
    return Move{stats->diff_abs_mean / stats->prev_abs_mean, by_rate};
  }

  /// The update before had the same rate, and no dumped value says how far it moved the weight.
  bool same_before(const TensorId& weight, const LearningRate& rate) {
    bool missing = false;
    const auto before = session_.previous(weight, &missing);
    if (!before || before->step + 1 != weight.step || session_.previous(*before, &missing)) return false;
    const auto then = rate_of(*before);
    return then && then->source.node == rate.source.node && then->value == rate.value;
  }

  void follow_large_rate(const std::vector<TensorId>& found, std::set<std::tuple<int, int, NodeId>>* told) {
    const auto rate = rate_of(found.front());
    if (!rate) return;
    const TensorId& at = found.front();
    if (told->contains({at.rank, at.graph, rate->source.node})) return;
    std::set<NodeId> moved, weights;  // weights: by the rate alone
    double most = 0;
    for (const TensorId& weight : found) {
      const auto own = rate_of(weight);
      if (!own || own->source.node != rate->source.node) continue;
      const auto move = moved_too_far(weight, *own);
      if (!move) continue;
      moved.insert(weight.node);
      most = std::max(most, move->ratio);
      if (move->by_rate) weights.insert(weight.node);
    }
    const CauseGraph& graph = graph_of(at);
    const size_t all = graph.matrices().size();
    // One weight that moved too far is a matter of its gradient.
    if (weights.empty() || 2 * weights.size() < all) return;
    told->insert({at.rank, at.graph, rate->source.node});
    const bool since_before = same_before(at, *rate);
    const bool seen_before = since_before && std::any_of(hits_.begin(), hits_.end(), [&](const Hit& hit) {
      return is_any(kMoved, hit) && same_graph(hit.tensor, at) && hit.tensor.step + 1 == at.step && moved.contains(hit.tensor.node);
    });
    TensorId source = rate->source;
    const int64_t first_moved = source.step = at.step - (seen_before ? 1 : 0);
    const size_t cause =
        drafts_.add(CauseKind::kRateTooLarge, source, fmt::format("the learning rate {} is too large", format_short(rate->value)),
              fmt::format("{} of {} weights changed by up to {} times their size in one step", moved.size(), all, format_short(most, 2)));
    const std::vector<NodeId> start(moved.begin(), moved.end());
    const std::vector<bool> reached = graph.after(start);
    const int64_t first_reached = at.step + (since_before ? 0 : 1);
    const auto later = [&](const TensorId& id) {
      return same_graph(id, at) &&
             (moved.contains(id.node) ? id.step >= first_moved : id.step >= first_reached && graph.holds(reached, id.node));
    };
    take(cause, [&](const Hit& hit) { return (is_any(kMoved, hit) || is_any(kGrown, hit)) && later(hit.tensor); });
    for (size_t k = 0; k < from_origins_; ++k) {
      const CauseKind kind = drafts_[k].cause.kind;
      const bool grown = kind == CauseKind::kProductOverflow || kind == CauseKind::kSumOverflow || kind == CauseKind::kExpOverflow ||
                         kind == CauseKind::kCastOverflow || kind == CauseKind::kUnknown;
      if (grown && later(drafts_[k].cause.tensor)) drafts_.explain(k, cause);
    }
  }

  // ---- units that let nothing through ----

  void follow_dead_units() {
    for (size_t i = 0; i < hits_.size(); ++i) {
      const Hit& anchor = hits_[i];
      if (anchor.rule != "dead-relu") continue;
      const CauseGraph& graph = graph_of(anchor.tensor);
      const auto [at, fresh] = behind_dead_.try_emplace({anchor.tensor.rank, anchor.tensor.graph, anchor.tensor.node});
      const auto& [reached, behind] = at->second;
      if (fresh) {
        // No gradient passes, and what is multiplied with the output is zero.
        std::vector<NodeId> backward;
        for (const Use& use : graph.graph().effective_users(anchor.tensor.node)) {
          if (in_category(graph.graph().node(use.node), Category::kGradient)) backward.push_back(use.node);
        }
        const NodeId dead[] = {anchor.tensor.node};
        at->second = {graph.after(backward), graph.after(dead)};
      }
      if (!of_hit_[i]) of_hit_[i] = drafts_.add(CauseKind::kDeadUnits, anchor.tensor, "no unit lets anything through", "all outputs are 0");
      take(*of_hit_[i], [&](const Hit& hit) {
        if (!same_graph(hit.tensor, anchor.tensor) || hit.tensor.step != anchor.tensor.step) return false;
        // What lets nothing through gives the same for every sample.
        if (hit.rule == "equal-outputs") return graph.holds(behind, hit.tensor.node);
        return (is_any(kZero, hit) || is_any(kStill, hit)) && graph.holds(reached, hit.tensor.node);
      });
    }
  }

  // ---- gradients that vanish by depth ----

  void follow_vanishing() {
    for (size_t i = 0; i < hits_.size(); ++i) {
      const Hit& anchor = hits_[i];
      if (anchor.rule != "vanishing-by-depth" || of_hit_[i]) continue;
      const CauseGraph& graph = graph_of(anchor.tensor);
      const std::vector<bool> way = graph.before(anchor.tensor.node);
      of_hit_[i] = drafts_.add(CauseKind::kVanishing, anchor.tensor, "gradients vanish layer by layer", message_of(anchor));
      take(*of_hit_[i], [&](const Hit& hit) {
        if (!is_any(kFaint, hit) || !same_graph(hit.tensor, anchor.tensor) || hit.tensor.step < anchor.tensor.step) return false;
        // What the gradient is made of passes this layer on its way to the first one.
        const Node& node = session_.node(hit.tensor);
        for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
          const NodeId producer = graph.graph().effective_producer(node.id, slot).node;
          if (producer != kNoNode && way[producer] && in_category(graph.graph().node(producer), Category::kGradient)) return true;
        }
        return false;
      });
    }
  }

  // ---- a rank that differs from its replicas ----

  void follow_replicas() {
    for (size_t i = 0; i < hits_.size(); ++i) {
      // What is NaN or Inf has its origin.
      const Hit& anchor = hits_[i];
      if (anchor.rule != "replica-differs" || of_hit_[i]) continue;
      const bool flipped = !detail_of(anchor, "flipped_bit").empty();
      of_hit_[i] = drafts_.add(CauseKind::kReplica, anchor.tensor, flipped ? "a replica differs in a single flipped bit" : "a replica differs",
                         message_of(anchor));
      if (!anchor.before_update || anchor.before_update->times < kFarTooLarge) continue;
      explain_by_far_value(*of_hit_[i], anchor.tensor);
    }
  }

  /// Where a rank took a value of `parameter` that is far too large, what broke behind it broke for that: on this rank, and on all that
  /// got it through a collective.
  void explain_by_far_value(size_t cause, const TensorId& parameter) {
    const CauseGraph& graph = graph_of(parameter);
    const NodeId start[] = {parameter.node};
    const std::vector<bool> reached = graph.after(start);
    std::vector<NodeId> collectives;
    for (const Node& node : graph.graph().nodes()) {
      if (reached[node.id] && collective_kind(node)) collectives.push_back(node.id);
    }
    const std::vector<bool> elsewhere = graph.after(collectives);
    // Not all that joins calls is recorded.
    const bool recorded = graph.graph().recorded_calls();
    uint32_t first = UINT32_MAX;
    for (const Use& use : graph.graph().effective_users(parameter.node)) first = std::min(first, graph.graph().node(use.node).order);
    const auto behind = [&](const TensorId& id, bool here) {
      if (id.step != parameter.step || id.graph != parameter.graph) return false;
      const Node* const node = graph.graph().find(session_.node(id).name);
      return node != nullptr && (graph.holds(here ? reached : elsewhere, node->id) || (recorded && node->order >= first));
    };
    for (size_t k = 0; k < from_origins_; ++k) {
      const TensorId& origin = drafts_[k].cause.tensor;
      if (behind(origin, origin.rank == parameter.rank && !drafts_[k].shared)) drafts_.explain(k, cause);
    }
    take(cause, [&](const Hit& hit) {
      if ((is_any(kMoved, hit) || hit.rule == kHuge) && hit.tensor == parameter) return true;
      // The update of that step made other weights large.
      const bool later = hit.tensor.step > parameter.step && hit.tensor.graph == parameter.graph;
      return is_any(kGrown, hit) && (later || behind(hit.tensor, hit.tensor.rank == parameter.rank));
    });
  }

  /// What something outside of the graph has made far too large breaks in more than one place.
  void follow_grown_parameters() {
    for (size_t k = 0; k < from_origins_; ++k) {
      const Origin* const origin = drafts_[k].origin;
      if (origin == nullptr || drafts_[k].because || !changed_outside(*origin)) continue;
      const Grown& most = origin->grown.front();
      if (most.largest < kFarTooLarge * most.before) continue;
      TensorId parameter = most.parameter;
      parameter.step = origin->tensor.step;
      const std::optional<size_t> replica = replica_cause(parameter);
      if (replica) drafts_.explain(k, *replica);
      explain_by_far_value(replica.value_or(k), parameter);
    }
  }

  /// A tanh or a normalization may hide that a weight is far too large: then nothing breaks.
  void follow_huge_weights() {
    std::map<std::tuple<int, int, NodeId>, size_t> told;
    for (size_t i = 0; i < hits_.size(); ++i) {
      const Hit& anchor = hits_[i];
      const TensorId& weight = anchor.tensor;
      if (anchor.rule != kHuge) continue;
      const auto known = told.find({weight.rank, weight.graph, weight.node});
      if (!of_hit_[i]) of_hit_[i] = known != told.end() ? std::optional(known->second) : replica_cause(weight);
      if (!of_hit_[i]) {
        bool missing = false;
        const auto before = session_.previous(weight, &missing);
        const auto stats = before ? session_.stats(*before) : before.status();
        if (!stats || !(largest_magnitude(anchor.stats) > kFarTooLarge * largest_magnitude(*stats))) continue;
        of_hit_[i] = drafts_.add(CauseKind::kBadParameter, weight, "it became far too large",
                                 fmt::format("up to {} in step {}, {} in step {}", format_short(largest_magnitude(anchor.stats)), weight.step,
                                             format_short(largest_magnitude(*stats)), before->step));
        explain_by_far_value(*of_hit_[i], weight);
      }
      told.try_emplace({weight.rank, weight.graph, weight.node}, *of_hit_[i]);
    }
  }

  /// The finding is about the ranks that differ, or where nobody can tell which are wrong, about some of them.
  std::optional<size_t> replica_cause(const TensorId& parameter) const {
    const std::string& name = session_.node(parameter).name;
    for (size_t i = 0; i < hits_.size(); ++i) {
      const TensorId& at = hits_[i].tensor;
      if (hits_[i].rule != "replica-differs" || at.step != parameter.step) continue;
      if (at == parameter || session_.node(at).name == name) return of_hit_[i];
    }
    return std::nullopt;
  }

  /// A finding about a value that was finite then. What broke it later is another matter.
  static bool was_finite(const Hit& hit) { return hit.before_update && hit.before_update->times > 0; }

  /// ", the same on ranks 0-3": ranks that tell the same story have one cause.
  std::string shared_by(const Origin& origin) const {
    const std::span<const int> ranks = origins_.ranks(origin);
    if (ranks.size() < 2) return "";
    return fmt::format(", the same on ranks {}", numbers_text(std::vector<int64_t>(ranks.begin(), ranks.end())));
  }

  static std::string detail_of(const Hit& hit, std::string_view name) {
    const auto found = std::ranges::find(hit.details, name, [](const auto& detail) -> std::string_view { return detail.first; });
    return found == hit.details.end() ? "" : found->second;
  }
  static std::string message_of(const Hit& hit) { return detail_of(hit, "message"); }

  // ---- together ----

  static bool same_graph(const TensorId& a, const TensorId& b) { return a.rank == b.rank && a.graph == b.graph; }

  const CauseGraph& graph_of(const TensorId& id) {
    const auto [at, fresh] = graphs_.try_emplace({id.rank, id.graph});
    if (fresh) at->second = std::make_unique<CauseGraph>(*session_.graph(id.rank, id.graph));
    return *at->second;
  }

  /// Findings without a cause for which `follows` is true.
  template <typename F>
  void take(size_t cause, F follows) {
    for (size_t i = 0; i < hits_.size(); ++i) {
      if (!of_hit_[i] && follows(hits_[i])) of_hit_[i] = cause;
    }
  }

  Session& session_;
  std::vector<Hit>& hits_;
  CheckResult& result_;
  const OriginIndex origins_;
  const std::vector<PutIn>& put_in_;
  std::map<const Origin*, std::vector<const Origin*>> brought_;
  std::map<std::pair<int, int>, std::unique_ptr<CauseGraph>> graphs_;
  /// What a dead unit keeps gradients from, and what is computed from it.
  std::map<std::tuple<int, int, NodeId>, std::pair<std::vector<bool>, std::vector<bool>>> behind_dead_;
  CauseDrafts drafts_;
  std::vector<std::optional<size_t>> of_hit_;  ///< index into drafts_
  size_t from_origins_ = 0;                    ///< so many drafts come from NaN and Inf
};

}  // namespace

void attribute(Session& session, const OriginResult& origins, CheckResult& result) { CauseSearch(session, origins, result).run(); }

}  // namespace msdbg
