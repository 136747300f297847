// The shortest endings of node names that name no other node.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

/// Whether `word`, as ShortNames::elided() writes it, is a form of this name: its last components begin and end like those of the word.
bool is_elided_form(std::string_view word, std::string_view name);

/// Made once for the graphs of a session; an answer then costs a search in a sorted list. It is valid as long as these graphs.
class ShortNames {
 public:
  explicit ShortNames(std::span<const GraphPtr> graphs);

  /// Of other names that are made of components. They stay where they are.
  explicit ShortNames(std::span<const std::string> names);

  /// Whether these are the graphs that it was made of.
  bool is_of(std::span<const GraphPtr> graphs) const;

  /// `fc1-Dense/MatMul-op0` of `Default/net/fc1-Dense/MatMul-op0`: whole components; the full name where nothing shorter will do.
  std::string of(std::string_view full_name) const;

  /// Where of() is long: the beginnings and ends of its components, `_loss_…Logits/Sparse…ts-op0`, which no other name has; else of().
  std::string elided(std::string_view full_name) const;

 private:
  void sort();

  std::vector<std::weak_ptr<const Graph>> graphs_;
  std::vector<std::string_view> names_;  // each once, by their components from the last to the first
};

}  // namespace msdbg
