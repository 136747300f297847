// The shortest unique suffixes of node names.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg {

/// Whether `word`, in the form of ShortNames::elided(), abbreviates this name: its last components start and end like those of the
/// word.
bool is_elided_form(std::string_view word, std::string_view name);

/// Built once for the graphs of a session. The first lookups scan all names; later ones cost a binary search. Valid as long as these
/// graphs; one thread at a time.
class ShortNames {
 public:
  explicit ShortNames(std::span<const GraphPtr> graphs);

  /// For other names made of components. The caller keeps them alive.
  explicit ShortNames(std::span<const std::string> names);

  /// Whether it was built for these graphs.
  bool is_of(std::span<const GraphPtr> graphs) const;

  /// `fc1-Dense/MatMul-op0` of `Default/net/fc1-Dense/MatMul-op0`: whole components; the full name if nothing shorter is unique.
  std::string of(std::string_view full_name);

  /// If of() is long: the starts and ends of its components, `_loss_…Logits/Sparse…ts-op0`, if no other name matches; else of().
  std::string elided(std::string_view full_name);

 private:
  void prepare();
  size_t longest_common_ending(std::string_view full_name) const;
  bool unique_form(std::string_view word, size_t components, size_t each, std::string_view full_name);

  std::vector<std::weak_ptr<const Graph>> graphs_;
  std::vector<std::string_view> names_;  // from the first sorting on: each once, by components from last to first
  std::map<std::pair<size_t, size_t>, std::vector<uint32_t>> forms_;  // by components and width of each: hashes, sorted
  bool sorted_ = false;
  int questions_ = 0;
};

}  // namespace msdbg
