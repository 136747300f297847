#include "msdbg/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "analysis/optimizer_inputs.h"
#include "analysis/replica_model.h"

namespace msdbg {
namespace {

struct RoleName {
  std::string_view name;
  SettingRole role;
};
/// Last components of parameter names, and names of inputs of optimizers.
constexpr RoleName kNames[] = {{"learning_rate", SettingRole::kLearningRate}, {"lr", SettingRole::kLearningRate},
                               {"alpha", SettingRole::kLearningRate},         {"momentum", SettingRole::kMomentum},
                               {"beta1", SettingRole::kMomentum},             {"beta2", SettingRole::kMomentum},
                               {"beta1_power", SettingRole::kMomentum},       {"beta2_power", SettingRole::kMomentum},
                               {"rho", SettingRole::kMomentum},               {"weight_decay", SettingRole::kWeightDecay},
                               {"decay", SettingRole::kWeightDecay},          {"global_step", SettingRole::kStepCounter},
                               {"current_iterator_step", SettingRole::kStepCounter}, {"eps", SettingRole::kOther},
                               {"epsilon", SettingRole::kOther},              {"l1", SettingRole::kOther},
                               {"l2", SettingRole::kOther},                   {"lr_power", SettingRole::kOther}};

std::optional<SettingRole> role_of_name(std::string_view name) {
  const std::string lower = to_lower(name);
  // Groups of parameters have learning_rate_group_0 and the like.
  if (lower.starts_with("learning_rate")) return SettingRole::kLearningRate;
  for (const RoleName& known : kNames) {
    if (lower == known.name) return known.role;
  }
  return std::nullopt;
}

std::string_view last_part(std::string_view name) { return name.substr(name.find_last_of("./") + 1); }

/// Null where the graph does not say.
const Shape* shape_of(const Node& node) { return node.outputs.empty() || !node.outputs[0].shape ? nullptr : &*node.outputs[0].shape; }

/// moments.fc1.weight is fc1.weight with one more component.
bool is_of_one_weight(const Graph& graph, const Node& node) {
  for (size_t dot = node.name.find('.'), begin = 0; dot != std::string::npos; begin = dot + 1, dot = node.name.find('.', begin)) {
    const Node* const other = graph.find(node.name.substr(0, begin) + node.name.substr(dot + 1));
    if (other != nullptr && other->trainable) return true;
  }
  return false;
}

/// Inputs that optimizers have and other operators with an `alpha` have not.
bool takes_gradient(std::span<const std::string> names) {
  return std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("grad") || name == "delta"; });
}

class SettingsFinder {
 public:
  SettingsFinder(Session& session, const FollowOptions& options) : session_(session) {
    for (const int rank : session.ranks()) {
      if (options.ranks.contains(rank)) result_.ranks.push_back(rank);
    }
    for (const int64_t step : session.steps()) {
      if (options.steps.contains(step)) result_.steps.push_back(step);
    }
  }

  Result<SettingsResult> find() {
    for (const GraphPtr& graph : session_.graphs()) {
      if (std::ranges::find(result_.ranks, graph->rank()) == result_.ranks.end()) continue;
      for (const Node& node : graph->nodes()) {
        if (interrupt_requested()) return Status(Code::kInterrupted, "interrupted");
        if (node.kind == NodeKind::kParameter) look_at_parameter(*graph, node);
        else if (node.role == CallRole::kOptimizer) look_at_call(*graph, node);
        else if (node.kind == NodeKind::kOperator) look_at_optimizer(*graph, node);
      }
    }
    std::map<std::string, std::vector<const Known*>> apart;  // by title: those with other values; by name: parameters
    for (const Known& known : settings_) {
      if (known.title.empty()) apart[std::string(last_part(known.setting.name))].push_back(&known);
    }
    for (Known& known : settings_) {
      if (known.doubtful && !has_value(known)) continue;
      if (!known.title.empty()) {
        // Each operator may have a constant of its own, or take what it makes of a parameter: equal values are one setting.
        std::vector<const Known*>& before = apart[known.title];
        const auto same = [&](const Known* each) { return agree(each->of_rank, known.of_rank); };
        const auto shown = [&](const Known* parameter) { return has_value(*parameter) && same(parameter); };
        if (std::ranges::any_of(before, same) || std::ranges::any_of(apart[known.title.substr(0, known.title.find(" ("))], shown)) continue;
        before.push_back(&known);
        known.setting.name = before.size() == 1 ? known.title : fmt::format("{} {}", known.title, before.size());
      }
      known.setting.series = joined(known.of_rank);
      result_.settings.push_back(std::move(known.setting));
    }
    std::ranges::stable_sort(result_.settings, {}, &Setting::role);
    return std::move(result_);
  }

 private:
  using Values = std::vector<std::optional<double>>;  // one for each step
  struct Known {
    Setting setting;
    std::map<int, Values> of_rank;
    std::string title = {};  ///< of what an optimizer takes: its name without a number
    bool doubtful = false;  ///< its shape is not known: it is one only if a single number was dumped
  };

  static bool has_value(const Known& known) {
    return std::ranges::any_of(known.of_rank, [](const auto& rank) {
      return std::ranges::any_of(rank.second, [](const std::optional<double>& value) { return value.has_value(); });
    });
  }

  void look_at_parameter(const Graph& graph, const Node& node) {
    if (node.trainable || is_of_one_weight(graph, node)) return;
    std::optional<SettingRole> role = is_loss_scale(node) ? std::optional(SettingRole::kLossScale) : role_of_name(last_part(node.name));
    if (!role && node.optimizer_state) role = SettingRole::kOther;
    if (!role) return;
    const Shape* const shape = shape_of(node);
    const uint64_t elements = shape == nullptr ? 1 : element_count(*shape).value_or(0);
    const bool schedule = role == SettingRole::kLearningRate && shape != nullptr && shape->size() == 1;
    if (elements != 1 && !schedule) return;
    Known& known = setting_of(printable(node.name), *role, SettingFrom::kParameter, graph, node.id, 0);
    known.setting.elements = elements;
    known.doubtful = shape == nullptr;
    read(graph, {node.id, {Io::kOutput, 0}}, &known);
  }

  /// Inputs of an optimizer that no parameter holds.
  void look_at_optimizer(const Graph& graph, const Node& node) {
    const std::vector<std::string> names = input_names(node);
    if (!takes_gradient(names)) return;
    for (uint32_t slot = 0; slot < std::min(names.size(), node.inputs.size()); ++slot) {
      const std::string& name = names[slot];
      const std::optional<SettingRole> role = role_of_name(name);
      const Edge producer = graph.effective_producer(node.id, slot);
      if (!role || producer.node == kNoNode) continue;
      const Node& source = graph.node(producer.node);
      if (source.kind == NodeKind::kParameter) continue;
      const SettingFrom from = source.kind == NodeKind::kConstant ? SettingFrom::kConstant : SettingFrom::kComputed;
      // Each constant has a node of its own in some releases: equal values are one setting.
      const std::string what = source.constant_value.empty() ? source.name : "=" + source.constant_value;
      const std::string title = fmt::format("{} ({})", name, printable(node.op));
      std::vector<std::string>& seen = sources_[{graph.rank(), title}];
      auto at = std::ranges::find(seen, what);
      const bool is_new = at == seen.end();
      if (is_new) at = seen.insert(at, what);
      const auto number = at - seen.begin() + 1;
      Known& known = setting_of(number == 1 ? title : fmt::format("{} {}", title, number), *role, from, graph, source.id, producer.slot);
      known.title = title;
      if (is_new || known.of_rank[graph.rank()].empty()) read(graph, {node.id, {Io::kInput, slot}}, &known);
      read(graph, {source.id, {Io::kOutput, producer.slot}}, &known);
      const auto inline_value = parse_double(source.constant_value);
      for (auto& value : known.of_rank[graph.rank()]) {
        if (!value && inline_value) value = inline_value;
      }
    }
  }

  /// A recorded call of an optimizer has them among its arguments.
  void look_at_call(const Graph& graph, const Node& node) {
    std::map<std::string, Values> found;
    for (size_t i = 0; i < result_.steps.size(); ++i) {
      for (const Attribute& argument : session_.arguments({graph.rank(), graph.id(), result_.steps[i], 0, node.id, {}})) {
        const std::string name(last_part(argument.name.get()));
        const std::optional<double> value = role_of_name(name) ? parse_double(argument.value.get()) : std::nullopt;
        if (!value || (name == "alpha" && !(*value < 0 && updates_parameter(graph, node)))) continue;
        Values& values = found[name == "alpha" ? "lr" : name];
        values.resize(result_.steps.size());
        values[i] = name == "alpha" ? -*value : *value;
      }
    }
    // One call for each parameter: equal values are one setting.
    for (auto& [name, values] : found) {
      const std::string title = fmt::format("{} ({})", name, printable(node.op));
      for (size_t number = 1;; ++number) {
        Known& known = setting_of(number == 1 ? title : fmt::format("{} {}", title, number), *role_of_name(name), SettingFrom::kConstant,
                                  graph, node.id, 0);
        Values& before = known.of_rank[graph.rank()];
        before.resize(values.size());
        if (!agree(before, values)) continue;
        for (size_t i = 0; i < values.size(); ++i) {
          if (!before[i]) before[i] = values[i];
        }
        break;
      }
    }
  }

  /// `weight.add_(gradient, alpha=-lr)`; a momentum is added to in the same way, with another alpha.
  static bool updates_parameter(const Graph& graph, const Node& node) {
    const Edge maker = node.inputs.empty() ? Edge() : graph.effective_producer(node.id, 0);
    return node.op == "add_" && (maker.node == kNoNode || graph.node(maker.node).kind == NodeKind::kParameter);
  }

  Known& setting_of(const std::string& name, SettingRole role, SettingFrom from, const Graph& graph, NodeId node, uint32_t slot) {
    const auto [at, is_new] = by_name_.try_emplace(name, settings_.size());
    if (is_new) {
      Setting setting;
      setting.name = name;
      setting.role = role;
      setting.from = from;
      const std::vector<int64_t> steps = session_.steps(graph.rank(), graph.id());
      setting.place = {graph.rank(), graph.id(), steps.empty() ? 0 : steps.front(), 0, node, {Io::kOutput, slot}};
      settings_.push_back({std::move(setting), {}, {}, false});
    }
    return settings_[at->second];
  }

  struct Place {
    NodeId node;
    Slot slot;
  };

  /// Fills in the steps that are not known yet: another graph of the rank, or another place, may have had them.
  void read(const Graph& graph, const Place& place, Known* known) {
    Values& values = known->of_rank[graph.rank()];
    values.resize(result_.steps.size());
    if (known->setting.elements != 1) return;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i]) values[i] = number_at(session_, {graph.rank(), graph.id(), result_.steps[i], 0, place.node, place.slot});
    }
  }

  static bool agree(const Values& a, const Values& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] && b[i] && *a[i] != *b[i] && !(*a[i] != *a[i] && *b[i] != *b[i])) return false;
    }
    return true;
  }

  static bool agree(const std::map<int, Values>& a, const std::map<int, Values>& b) {
    return std::ranges::all_of(b, [&](const auto& rank) {
      const auto other = a.find(rank.first);
      return other != a.end() && agree(other->second, rank.second);
    });
  }

  /// A step that a rank lacks is no difference.
  static std::vector<SettingSeries> joined(const std::map<int, Values>& of_rank) {
    std::vector<SettingSeries> series;
    for (const auto& [rank, values] : of_rank) {
      auto same = std::ranges::find_if(series, [&](const SettingSeries& each) { return agree(each.values, values); });
      if (same == series.end()) same = series.insert(same, {{}, values});
      same->ranks.push_back(rank);
      for (size_t i = 0; i < values.size(); ++i) {
        if (!same->values[i]) same->values[i] = values[i];
      }
    }
    std::ranges::stable_sort(series, [](const SettingSeries& a, const SettingSeries& b) { return a.ranks.size() > b.ranks.size(); });
    return series;
  }

  Session& session_;
  SettingsResult result_;
  std::vector<Known> settings_;
  std::map<std::string, size_t> by_name_;
  std::map<std::pair<int, std::string>, std::vector<std::string>> sources_;  // by rank and title
};

}  // namespace

std::string_view setting_role_name(SettingRole role) {
  switch (role) {
    case SettingRole::kLearningRate: return "learning_rate";
    case SettingRole::kMomentum: return "momentum";
    case SettingRole::kWeightDecay: return "weight_decay";
    case SettingRole::kLossScale: return "loss_scale";
    case SettingRole::kStepCounter: return "step_counter";
    case SettingRole::kOther: return "other";
  }
  return "other";
}

std::string_view setting_from_name(SettingFrom from) {
  switch (from) {
    case SettingFrom::kParameter: return "parameter";
    case SettingFrom::kConstant: return "constant";
    case SettingFrom::kComputed: return "computed";
  }
  return "parameter";
}

bool Setting::differs() const { return series.size() > 1; }

bool Setting::has_majority() const {
  size_t others = 0;
  for (size_t i = 1; i < series.size(); ++i) others += series[i].ranks.size();
  return differs() && series.front().ranks.size() > others;
}

Result<SettingsResult> settings(Session& session, const FollowOptions& options) { return SettingsFinder(session, options).find(); }

}  // namespace msdbg
