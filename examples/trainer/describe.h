// Describes the network to the agent: names, types, shapes, edges and source lines.
#pragma once

#include <cstdint>
#include <string>

#include "msdbg/agent.h"
#include "net.h"

namespace trainer {

inline constexpr int64_t kSmallCount = 16;

struct DescribeOptions {
  /// One more parameter and an operator that passes it on, for tests with large tensors; none if empty.
  const Values* extra = nullptr;
  /// Operators that run in every step, each with an output of kSmallCount numbers.
  int64_t small_nodes = 0;
  /// Operators that are described but never run.
  int64_t padding_nodes = 0;
  /// The group of a training on several ranks, as its AllReduce operators name it; "" for one rank.
  std::string group = {};
};

/// Node k is the operator whose place_of() is k. The operator of `extra` follows, if there is one, then the small ones.
msdbg::agent::GraphDescription describe(const Net& net, const DescribeOptions& options = {});

}  // namespace trainer
