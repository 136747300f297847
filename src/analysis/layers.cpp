// One line for each trained parameter.
#include "msdbg/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "analysis/follow.h"
#include "msdbg/gradients.h"

namespace msdbg {
namespace {

constexpr double kEpsilon = 1e-9;  // as in the conditions on change

/// A trained parameter with its gradient. Several graphs may share it; this is the graph with the most steps.
struct Trained {
  const Graph* graph = nullptr;
  const Node* parameter = nullptr;
  std::optional<GradientOf> gradient;
};

TensorId value_of(const Graph& graph, NodeId node, int64_t step) { return {graph.rank(), graph.id(), step, 0, node, {Io::kOutput, 0}}; }

/// The value of a parameter in a step; where an optimizer inside a condition has a graph of its own, another graph dumped it.
TensorId weight_at(Session& session, const Trained& trained, int64_t step) {
  const TensorId own = value_of(*trained.graph, trained.parameter->id, step);
  if (session.exists(own)) return own;
  for (const GraphPtr& graph : session.graphs()) {
    const Node* const same = graph->rank() == own.rank ? graph->find(trained.parameter->name) : nullptr;
    if (same == nullptr || same->kind != NodeKind::kParameter) continue;
    const TensorId other = value_of(*graph, same->id, step);
    if (session.exists(other)) return other;
  }
  return own;
}

/// Where the gradient of a step can be read: as the output of its operator, or as the input of the optimizer.
std::optional<TensorId> gradient_at(Session& session, const Trained& trained, int64_t step) {
  if (!trained.gradient) return std::nullopt;
  const GradientOf& gradient = *trained.gradient;
  const int rank = trained.graph->rank(), id = trained.graph->id();
  if (gradient.producer.node != kNoNode && trained.graph->node(gradient.producer.node).kind == NodeKind::kOperator) {
    const TensorId output{rank, id, step, 0, gradient.producer.node, {Io::kOutput, gradient.producer.slot}};
    if (session.exists(output)) return output;
  }
  if (gradient.optimizer == kNoNode) return std::nullopt;
  const TensorId input{rank, id, step, 0, gradient.optimizer, {Io::kInput, gradient.slot}};
  if (session.exists(input)) return input;
  return std::nullopt;
}

class LayerFinder {
 public:
  LayerFinder(Session& session, const LayersOptions& options) : session_(session), options_(options) {}

  Result<LayersResult> find() {
    if (options_.on) {
      if (const auto any = resolve_or_explain(*options_.on, session_.graphs()); !any) return any.status();
    }
    collect();
    if (trained_.empty()) return nothing();
    for (const auto& [key, one] : trained_) {
      for (const int64_t step : session_.steps(one.graph->rank(), one.graph->id())) {
        if (options_.steps.contains(step)) steps_.insert(step);
      }
    }
    if (Status status = compute_statistics(); !status.ok()) return status;
    LayersResult result;
    result.steps.assign(steps_.begin(), steps_.end());
    result.by_layer = options_.by_layer;
    result.frozen = std::move(frozen_);
    for (const auto& [key, one] : trained_) {
      if (interrupt_requested()) interrupted_ = true;
      if (interrupted_) break;
      result.layers.push_back(layer(one));
    }
    result.interrupted = interrupted_;
    const auto none = [](const Layer& layer) { return layer.points.empty(); };
    if (!interrupted_ && std::ranges::all_of(result.layers, none)) {
      return Status(Code::kNotFound, fmt::format("no trained parameter was dumped in steps {} (have steps {}); the command why gives the "
                                                 "reason", options_.steps.text(), numbers_text(session_.steps())));
    }
    std::stable_sort(result.layers.begin(), result.layers.end(), [](const Layer& a, const Layer& b) { return place(a) < place(b); });
    if (result.by_layer) result.layers = rolled_up(result.layers);
    return result;
  }

 private:
  using Key = std::pair<int, std::string>;  // rank, name

  static std::tuple<int, uint32_t> place(const Layer& layer) {
    return {layer.parameters.front().rank, layer.used_by == nullptr ? UINT32_MAX : layer.used_by->order};
  }

  void collect() {
    std::map<Key, size_t> steps_of;
    std::set<Key> others;
    for (const GraphPtr& graph : session_.graphs()) {
      if (!options_.ranks.contains(graph->rank())) continue;
      const size_t steps = session_.steps(graph->rank(), graph->id()).size();
      for (const Node& node : graph->nodes()) {
        if (node.kind != NodeKind::kParameter || !(node.trainable || in_category(node, Category::kWeight))) continue;
        if (options_.on && !options_.on->matches(*graph, node)) continue;
        const Key key{graph->rank(), node.name};
        if (!node.trainable) {
          others.insert(key);
          continue;
        }
        const auto known = trained_.find(key);
        if (known != trained_.end() && steps_of[key] >= steps) continue;
        trained_[key] = {graph.get(), &node, gradient_of(*graph, node.id)};
        steps_of[key] = steps;
      }
    }
    for (const Key& key : others) {
      if (!trained_.contains(key)) frozen_.push_back(key.second);
    }
  }

  Status nothing() const {
    if (options_.on) return Status(Code::kNotFound, fmt::format("layers: no trained parameter matches '{}'", options_.on->text()));
    if (frozen_.empty()) return Status(Code::kNotFound, "layers: the graph has no parameter that an optimizer updates");
    return Status(Code::kNotFound,
                  fmt::format("layers: no optimizer updates any of the {} weights; msdbg trend shows them", frozen_.size()));
  }

  /// All threads read what is missing; afterwards every statistic is known.
  Status compute_statistics() {
    std::vector<NodeRef> nodes;
    for (const auto& [key, one] : trained_) {
      nodes.push_back({one.graph, one.parameter->id});
      if (one.gradient && one.gradient->producer.node != kNoNode) nodes.push_back({one.graph, one.gradient->producer.node});
    }
    Watchpoint warm;
    warm.id = 1;
    warm.on = Selector::of_nodes(nodes, session_.graphs());
    warm.optional = true;
    warm.condition = make_condition("tensor_overflow", {}).value();
    const Result<CheckResult> checked = check(session_, std::span(&warm, 1), check_options(options_));
    if (!checked) return checked.status();
    interrupted_ = checked->interrupted;
    return {};
  }

  Layer layer(const Trained& one) {
    Layer out;
    out.name = one.parameter->name;
    out.used_by = first_use(one);
    TensorId shown = value_of(*one.graph, one.parameter->id, 0);
    std::optional<TensorId> sound;  // the last value without NaN and Inf
    for (const int64_t step : session_.steps(one.graph->rank(), one.graph->id())) {
      if (!options_.steps.contains(step)) continue;
      const TensorId id = weight_at(session_, one, step);
      const Result<Stats> weight = session_.stats(id);
      const std::optional<TensorId> at = gradient_at(session_, one, step);
      const Result<Stats> gradient = at ? session_.stats(*at) : Result<Stats>(Status(Code::kNotFound, ""));
      if (!weight && out.problem.empty()) out.problem = weight.status().message();
      if (!weight && !gradient) continue;
      LayerPoint point;
      point.step = step;
      const auto read = [&](const Stats& stats, std::optional<double>* magnitude, std::optional<double>* zeros) {
        if (stats.knows(kStatAbsMean) && !std::isnan(stats.abs_mean)) *magnitude = stats.abs_mean;
        // Statistics that came with the dump have a norm instead.
        const bool norm = stats.knows(kStatL2Norm | kStatCount) && stats.count > 0 && std::isfinite(stats.l2_norm);
        if (!stats.knows(kStatAbsMean) && norm) {
          *magnitude = stats.l2_norm / std::sqrt(static_cast<double>(stats.count));
          out.by_norm = true;
        }
        if (stats.knows(kStatZero | kStatCount) && stats.count > 0) *zeros = stats.zero_percentage();
        point.bad += stats.nan_count + stats.inf_count();
        point.counted = point.counted && stats.knows(kStatNan | kStatPosInf | kStatNegInf);
      };
      if (weight) {
        read(*weight, &point.weight, &out.zeros);
        if (point.weight) out.weight = point.weight;
        out.elements = weight->count;
        shown = id;
        if (point.bad == 0) sound = id;
      }
      if (gradient) {
        read(*gradient, &point.gradient, &out.gradient_zeros);
        if (point.gradient) out.gradient_mean = point.gradient;
        out.gradient = at;
      }
      if (point.bad > 0 && !out.first_bad) out.first_bad = step;
      out.points.push_back(point);
    }
    out.parameters = {shown};
    if (sound) set_update(*sound, &out);
    if (!out.gradient && out.problem.empty()) {
      out.problem = !one.gradient         ? "the graph does not show which value is its gradient"
                    : session_.can_step() ? "its gradient was not watched"
                                          : "its gradient was not dumped";
    }
    return out;
  }

  void set_update(const TensorId& now, Layer* out) {
    bool history_missing = false;
    const Result<TensorId> before = session_.previous(now, &history_missing);
    if (!before) return;
    StatsRequest request;
    request.change = true;
    const Result<Stats> stats = session_.stats(now, *before, request);
    if (!stats || std::isnan(stats->diff_abs_mean) || stats->prev_nonfinite_count > 0 || stats->finite_count() != stats->count) return;
    out->updates = updates_between(*before, now);
    out->before = stats->prev_abs_mean;
    const double whole = stats->diff_abs_mean / (kEpsilon + stats->prev_abs_mean);
    // n updates that change by r each give at most (1 + r)^n - 1.
    out->update = out->updates <= 1 ? whole : std::pow(1 + whole, 1.0 / static_cast<double>(out->updates)) - 1;
  }

  /// The optimizer counts its updates in `global_step`; without it the difference of the step numbers counts.
  int64_t updates_between(const TensorId& before, const TensorId& now) {
    const Graph& graph = *session_.graph(now.rank, now.graph);
    if (const Node* counter = counter_of(graph)) {
      const auto a = session_.stats(value_of(graph, counter->id, before.step)), b = session_.stats(value_of(graph, counter->id, now.step));
      if (a && b && a->count == 1 && b->count == 1 && b->mean > a->mean) return static_cast<int64_t>(b->mean - a->mean);
    }
    return now.step - before.step - steps_of_others(before, now);
  }

  /// Steps between two values in which other graphs ran and this one did not: several networks count their steps together.
  int64_t steps_of_others(const TensorId& before, const TensorId& now) const {
    const std::vector<int64_t> own = session_.steps(now.rank, now.graph);
    std::set<int64_t> others;
    for (const GraphPtr& graph : session_.graphs()) {
      if (graph->rank() != now.rank) continue;
      for (const int64_t step : session_.steps(now.rank, graph->id())) {
        if (step > before.step && step < now.step && std::ranges::find(own, step) == own.end()) others.insert(step);
      }
    }
    return static_cast<int64_t>(others.size());
  }

  /// Searched for once in each graph.
  const Node* counter_of(const Graph& graph) {
    const auto [at, fresh] = counters_.try_emplace(&graph, nullptr);
    if (fresh) {
      const auto found = std::ranges::find_if(graph.nodes(), [](const Node& node) {
        return node.kind == NodeKind::kParameter && (node.name == "global_step" || node.name.ends_with(".global_step"));
      });
      if (found != graph.nodes().end()) at->second = &*found;
    }
    return at->second;
  }

  static const Node* first_use(const Trained& one) {
    const Node* first = nullptr;
    for (const Use& use : one.graph->effective_users(one.parameter->id)) {
      const Node& user = one.graph->node(use.node);
      if (in_category(user, Category::kGradient) || in_category(user, Category::kOptimizer)) continue;
      if (one.gradient && one.gradient->optimizer == user.id) continue;
      if (first == nullptr || user.order < first->order) first = &user;
    }
    return first;
  }

  static std::vector<Layer> rolled_up(const std::vector<Layer>& rows) {
    std::vector<Layer> out;
    std::map<Key, std::vector<const Layer*>> groups;
    std::vector<Key> order;
    for (const Layer& row : rows) {
      const Key key{row.parameters.front().rank, layer_of(row.name)};
      if (!groups.contains(key)) order.push_back(key);
      groups[key].push_back(&row);
    }
    for (const Key& key : order) out.push_back(joined(key.second, groups[key]));
    return out;
  }

  static Layer joined(const std::string& name, const std::vector<const Layer*>& members) {
    Layer out;
    out.name = name;
    out.by_norm = std::ranges::any_of(members, &Layer::by_norm);
    std::map<int64_t, std::vector<std::pair<const Layer*, const LayerPoint*>>> by_step;
    double changed = 0;
    for (const Layer* member : members) {
      out.parameters.push_back(member->parameters.front());
      out.elements += member->elements;
      if (out.used_by == nullptr) out.used_by = member->used_by;
      if (member->update) {
        const double size = member->before * static_cast<double>(member->elements);
        changed += *member->update * size;
        out.before += size;
      }
      out.updates = std::max(out.updates, member->updates);
      if (member->first_bad) out.first_bad = std::min(out.first_bad.value_or(INT64_MAX), *member->first_bad);
      if (out.problem.empty() && !member->problem.empty()) out.problem = member->name + ": " + member->problem;
      for (const LayerPoint& point : member->points) by_step[point.step].emplace_back(member, &point);
    }
    if (out.before > 0) out.update = changed / out.before;
    // Means over all elements: each member counts by its size.
    const auto mean = [](const auto& list, auto value) -> std::optional<double> {
      double sum = 0, n = 0;
      for (const auto& [member, point] : list) {
        const std::optional<double> one = value(*member, *point);
        if (!one) continue;
        sum += *one * static_cast<double>(member->elements);
        n += static_cast<double>(member->elements);
      }
      return n > 0 ? std::optional(sum / n) : std::nullopt;
    };
    for (const auto& [step, list] : by_step) {
      LayerPoint point{step, mean(list, [](const Layer&, const LayerPoint& p) { return p.weight; }),
                       mean(list, [](const Layer&, const LayerPoint& p) { return p.gradient; }), 0, true};
      for (const auto& [member, one] : list) {
        point.bad += one->bad;
        point.counted = point.counted && one->counted;
      }
      out.points.push_back(point);
      if (point.weight) out.weight = point.weight;
      if (point.gradient) out.gradient_mean = point.gradient;
      out.zeros = mean(list, [](const Layer& member, const LayerPoint&) { return member.zeros; });
      out.gradient_zeros = mean(list, [](const Layer& member, const LayerPoint&) { return member.gradient_zeros; });
    }
    return out;
  }

  Session& session_;
  const LayersOptions& options_;
  std::map<Key, Trained> trained_;
  std::map<const Graph*, const Node*> counters_;  // global_step of each graph; null where it has none
  std::vector<std::string> frozen_;
  std::set<int64_t> steps_;
  bool interrupted_ = false;
};

}  // namespace

std::string layer_of(std::string_view parameter) {
  size_t begin = 0;
  while (begin <= parameter.size()) {
    const size_t end = std::min(parameter.find('.', begin), parameter.size());
    const std::string_view part = parameter.substr(begin, end - begin);
    const bool number = !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (number && begin > 0) return std::string(parameter.substr(0, end));
    begin = end + 1;
  }
  const size_t last = parameter.rfind('.');
  return std::string(last == std::string_view::npos || last == 0 ? parameter : parameter.substr(0, last));
}

Result<LayersResult> layers(Session& session, const LayersOptions& options) { return LayerFinder(session, options).find(); }

}  // namespace msdbg
