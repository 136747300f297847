// The inputs of the operators by which optimizers of MindSpore update a parameter.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/session.h"

namespace msdbg {

/// How far an update moves an element.
enum class UpdateSize : uint8_t {
  kOfGradient,  ///< by the rate times the gradient, and what a momentum adds
  kOfRate,      ///< by about the rate: the gradient is divided by its own size
  kOther,
};

struct OptimizerOperator {
  std::string_view op;  ///< in lower case
  UpdateSize size = UpdateSize::kOther;
  std::string_view inputs;  ///< separated by commas
};

/// nullptr for other operators; case is ignored.
const OptimizerOperator* optimizer_operator(std::string_view op);

/// `variable`, `accumulation`, `learning_rate`: by the node's attribute, which releases from 2.3 on do not write for all operators, or by
/// its operator. Empty if neither tells.
std::vector<std::string> input_names(const Node& node);

/// The one number that a tensor holds, finite or not; nullopt if it was not dumped or holds more.
std::optional<double> number_at(Session& session, const TensorId& id);

/// The one number that an operator took in a step: by its recorded input, what made it, or the text of a constant in the graph.
std::optional<double> number_taken(Session& session, const Graph& graph, NodeId node, uint32_t slot, int64_t step);

/// True for names that only a learning rate has among the inputs of an optimizer.
bool is_rate_name(std::string_view name);

}  // namespace msdbg
