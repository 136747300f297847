// The origins of NaN and Inf in all steps, by the tensors that follow from them. Immutable; any thread.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "msdbg/analysis.h"

namespace msdbg {

class OriginIndex {
 public:
  /// Both are borrowed.
  OriginIndex(const Session& session, const OriginResult& origins);

  /// The origin that a bad tensor, or what was made of a bad input, follows from; nullptr: none. Where a broken parameter carried the
  /// fault on, that of the earlier step.
  const Origin* of(const TensorId& id) const;
  /// The collectives of its story that broke for the same unknown inputs of other ranks, itself included, in execution order; empty for
  /// other origins.
  std::vector<const Origin*> alike(const Origin& origin) const;
  /// The ranks whose story it is.
  std::span<const int> ranks(const Origin& origin) const;

 private:
  const Origin* listed(const TensorId& id) const;
  /// The origin itself, where it arrived from another rank, or that of the rank that tells the same story.
  const Origin* told(const StepOrigins& step, uint32_t index) const;
  const Origin* earliest(const TensorId& id) const;

  const Session& session_;
  std::map<std::tuple<int, int, int64_t>, const StepOrigins*> steps_;
};

}  // namespace msdbg
