// Infinities that the program put in, as a mask does before a softmax. They are no overflow, and what is computed from them alone is none
// either, until something makes NaN or a single number of them.
#pragma once

#include <unordered_map>

#include "agent/tensor_store.h"
#include "msdbg/simd.h"

namespace msdbg::agent {

class PutIn {
 public:
  /// Whether the program put in all that is not finite in this readable tensor. Operators say so by an attribute with the value
  /// "Infinity" or "-Infinity", or by being computed from constants alone; an input that nobody computed by being a mask of 0 and -Inf.
  bool holds(TensorStore& store, FlatIndex flat);
  /// Whether nobody can tell yet: this buffer is infinite, and no operator that reads it is known. Before the first step, a minimum that
  /// was never taken looks so.
  static bool is_open(TensorStore& store, FlatIndex flat);
  /// A new step, or another description.
  void clear() {
    known_.clear();
    back_.clear();
    from_numbers_.clear();
  }

 private:
  /// What the operators that are known do with a parameter.
  struct Use {
    bool operators = false;  ///< some are known
    bool read = false, limits = false, copied = false, trained = false;
  };
  static Use use_of(TensorStore& store, const Source& source);
  bool look(TensorStore& store, FlatIndex flat);
  bool look_at_input(TensorStore& store, const Source& source, const Stats& stats) const;
  bool look_at_output(TensorStore& store, NodeIndex node, FlatIndex flat, const Stats& stats);
  bool leads_back(TensorStore& store, SourceIndex source);
  bool is_made_from_numbers(TensorStore& store, SourceIndex source, int depth = 0);

  std::unordered_map<FlatIndex, bool> known_;   // of this step
  std::unordered_map<SourceIndex, bool> back_;  // what leads_back() found in it
  std::unordered_map<SourceIndex, bool> from_numbers_;  // the same for is_made_from_numbers()
};

}  // namespace msdbg::agent
