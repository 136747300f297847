// The shortest endings of node names that name no other node.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

/// Made once for the graphs of a session; an answer then costs a search in a sorted list. It is valid as long as these graphs.
class ShortNames {
 public:
  explicit ShortNames(std::span<const GraphPtr> graphs);

  /// Whether these are the graphs that it was made of.
  bool is_of(std::span<const GraphPtr> graphs) const;

  /// `fc1-Dense/MatMul-op0` of `Default/net/fc1-Dense/MatMul-op0`: whole components; the full name where nothing shorter will do.
  std::string of(std::string_view full_name) const;

 private:
  std::vector<std::weak_ptr<const Graph>> graphs_;
  std::vector<std::string_view> names_;  // each once, by their components from the last to the first
};

}  // namespace msdbg
