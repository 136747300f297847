// Steps of a dump in which a rank stopped: the training ended there, or the dump is still being written.
//
// A step is unfinished if operators at its end have no value although they had one in the step before or on another rank. In the first
// step of all, the graph tells, if the configuration of the dump chose no operators. MindSpore writes parameters when a step is over: a
// step that has them is finished. Recorded calls have no such sign: there a rank stopped if it ends within its forward pass, or within its
// backward pass and others got further.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "msdbg/session.h"

namespace msdbg {

struct UnfinishedStep {
  int64_t step = 0;
  int rank = 0, graph = 0;
  NodeId next = kNoNode;   ///< the first operator without a value, in execution order
  size_t ran = 0;          ///< operators with a value ...
  size_t operators = 0;    ///< ... of those that a finished step has
};

/// Looks at the last step of each rank, if it is one of these. By step, rank, graph; empty for sessions that are no dump of a graph.
std::vector<UnfinishedStep> unfinished_steps(Session& session, const IntSet& steps, const IntSet& ranks);

/// One sentence for each of these steps and ranks, such as `step 1 is unfinished: rank 1 ends before MatMul-op3 (net.py:12), after 8 of
/// 40 operators; ranks 0, 2-3 before AllReduce-op0, after 20`.
std::vector<std::string> unfinished_texts(Session& session, const IntSet& steps, const IntSet& ranks);

/// What `doctor` says of the ranks: those with other steps than the first one, and steps in which a rank stopped.
void add_rank_problems(Session& session, std::vector<Problem>& problems);

}  // namespace msdbg
