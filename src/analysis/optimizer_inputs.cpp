#include "analysis/optimizer_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace msdbg {
namespace {

using enum UpdateSize;

constexpr auto kOperators = std::to_array<OptimizerOperator>({
    {"adam", kOfRate, "var,m,v,beta1_power,beta2_power,lr,beta1,beta2,epsilon,grad"},
    {"fusedsparseadam", kOfRate, "var,m,v,beta1_power,beta2_power,lr,beta1,beta2,epsilon,grad,indices"},
    {"fusedsparselazyadam", kOfRate, "var,m,v,beta1_power,beta2_power,lr,beta1,beta2,epsilon,grad,indices"},
    {"adamweightdecay", kOfRate, "var,m,v,lr,beta1,beta2,epsilon,decay,gradient"},
    {"adamw", kOfRate, "var,m,v,max_v,gradient,step,lr,beta1,beta2,decay,eps,amsgrad,maximize"},
    {"applyadamwithamsgrad", kOfRate, "var,m,v,vhat,beta1_power,beta2_power,lr,grad"},
    {"applyadamwithamsgradv2", kOfRate, "var,m,v,vhat,beta1_power,beta2_power,lr,beta1,beta2,epsilon,grad"},
    {"applyadamax", kOfRate, "var,m,v,beta1_power,lr,beta1,beta2,epsilon,grad"},
    {"applyrmsprop", kOfRate, "var,mean_square,moment,learning_rate,grad,rho,momentum,epsilon"},
    {"applycenteredrmsprop", kOfRate, "var,mean_gradient,mean_square,moment,grad,learning_rate,rho,momentum,epsilon"},
    {"applyadagrad", kOfRate, "var,accum,lr,grad"},
    {"applyadagradv2", kOfRate, "var,accum,lr,grad"},
    {"applyadadelta", kOther, "var,accum,accum_update,lr,rho,epsilon,grad"},
    {"applymomentum", kOfGradient, "variable,accumulation,learning_rate,gradient,momentum"},
    {"applykerasmomentum", kOfGradient, "var,accum,lr,grad,momentum"},
    {"sgd", kOfGradient, "parameters,gradient,learning_rate,accum,momentum,stat"},
    {"applyftrl", kOther, "var,accum,linear,grad,lr,l1,l2,lr_power"},
    {"applyproximaladagrad", kOther, "var,accum,lr,l1,l2,grad"},
    {"fusedsparseproximaladagrad", kOther, "var,accum,lr,l1,l2,grad,indices"},
    {"applyproximalgradientdescent", kOther, "var,alpha,l1,l2,delta"},
    {"applygradientdescent", kOfGradient, "var,alpha,delta"},
});

/// The quoted words of `["variable", "accumulation"]`.
std::vector<std::string> quoted(std::string_view text) {
  std::vector<std::string> words;
  for (size_t open = text.find('"'); open != std::string_view::npos;) {
    const size_t close = text.find('"', open + 1);
    if (close == std::string_view::npos) break;
    words.emplace_back(text.substr(open + 1, close - open - 1));
    open = text.find('"', close + 1);
  }
  return words;
}

}  // namespace

const OptimizerOperator* optimizer_operator(std::string_view op) {
  const std::string lower = to_lower(op);
  const auto* const known = std::ranges::find(kOperators, lower, &OptimizerOperator::op);
  return known == kOperators.end() ? nullptr : known;
}

std::vector<std::string> input_names(const Node& node) {
  const auto written = std::ranges::find(node.attributes, "input_names", &Attribute::name);
  if (written != node.attributes.end()) return quoted(written->value.get());
  const OptimizerOperator* const known = optimizer_operator(node.op);
  if (known == nullptr) return {};
  const std::vector<std::string_view> names = split(known->inputs, ',');
  return {names.begin(), names.end()};
}

std::optional<double> number_at(Session& session, const TensorId& id) {
  const auto info = session.describe(id);
  if (!info || info->count != 1) return std::nullopt;
  const auto stats = session.stats(id);
  if (!stats) return std::nullopt;
  if (stats->nan_count > 0) return NAN;
  if (stats->inf_count() > 0) return stats->pos_inf_count > 0 ? INFINITY : -INFINITY;
  return stats->knows(kStatMean) ? std::optional(stats->mean) : std::nullopt;
}

std::optional<double> number_taken(Session& session, const Graph& graph, NodeId node, uint32_t slot, int64_t step) {
  const auto at = [&](NodeId where, Slot what) { return number_at(session, {graph.rank(), graph.id(), step, 0, where, what}); };
  if (const auto taken = at(node, {Io::kInput, slot})) return taken;
  const Edge producer = graph.effective_producer(node, slot);
  if (producer.node == kNoNode) return std::nullopt;
  if (const auto made = at(producer.node, {Io::kOutput, producer.slot})) return made;
  return parse_double(graph.node(producer.node).constant_value);
}

bool is_rate_name(std::string_view name) { return name == "lr" || name == "learning_rate" || name == "alpha"; }

}  // namespace msdbg
