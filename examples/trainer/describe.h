// Tells the agent what the network looks like: names, types, shapes, edges and source lines.
#pragma once

#include <cstdint>

#include "msdbg/agent.h"
#include "net.h"

namespace trainer {

struct DescribeOptions {
  /// One more parameter and an operator that passes it on, for tests with large tensors; none if empty.
  const Values* extra = nullptr;
  /// Operators that are described but never run.
  int64_t padding_nodes = 0;
};

/// Node k is operator k of `Op`. With `extra`, node kOpCount is its operator.
msdbg::agent::GraphDescription describe(const Net& net, const DescribeOptions& options = {});

}  // namespace trainer
