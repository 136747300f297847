// Infinities that a program puts in on purpose, as the mask of an attention does: which bad tensors of a step hold nothing else.
//
// The session's owner thread only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/step_model.h"

namespace msdbg {

class PutInValues {
 public:
  /// Looks at the calls or operators of a step. `calls`: in execution order.
  PutInValues(Evidence& evidence, const StepModel& model, const std::vector<Execution>& calls);

  bool contains(const TensorId& id) const { return roots_.count(id) > 0; }
  /// What was put in, with the number of tensors that hold it.
  std::vector<PutIn> all() const;
  /// Of a tensor that contains() knows: what brought the infinities.
  const PutIn& root(const TensorId& id) const { return put_in_[roots_.at(id)]; }
  /// Whether an infinity of this root reached what must be finite: the loss, a gradient or an update.
  bool matters(const TensorId& id) const;
  /// The tensors with a root, in order.
  const std::map<TensorId, size_t>& tensors() const { return roots_; }

 private:
  void look_at(const Execution& call);
  void look_at_parameters();
  std::vector<TensorId> bad_inputs(const Execution& call) const;
  std::optional<size_t> root_of_input(const Node& reader, const TensorId& input);
  std::optional<size_t> root_of_outside(const Node& reader, const TensorId& input, const Stats& stats);
  bool only_adds_to(const Node& node) const;
  std::string unseen_constant(const Node& node) const;
  bool is_made_from_numbers(const Node& node, int depth = 0);
  bool only_infinite(const TensorId& id);
  bool is_like_a_mask(const TensorId& id);
  size_t add_root(const TensorId& tensor, std::string argument);

  Evidence& evidence_;
  const StepModel& model_;
  std::vector<PutIn> put_in_;
  std::map<TensorId, size_t> roots_;  ///< index into put_in_
  std::map<NodeId, bool> from_numbers_;
  std::map<std::pair<DType, uint64_t>, size_t> alike_;  ///< the last output of this type and size
};

}  // namespace msdbg
