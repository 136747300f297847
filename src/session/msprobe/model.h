// The graph of one rank: the calls of all its steps, and where the values of each are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "session/msprobe/step_table.h"

namespace msdbg::msprobe {

inline constexpr uint32_t kNoOwner = UINT32_MAX;

/// What a node is in one step: a call, or a parameter of a module.
struct Owner {
  NodeId node = kNoNode;
  uint32_t call = kNoCall;
  uint32_t parameter = UINT32_MAX;  ///< UINT32_MAX: the call itself
  bool is_cut = false;              ///< stands for what the table lost
};

/// The values of one step.
struct StepValues {
  std::string path;
  std::vector<CallRecord> calls;
  std::vector<Owner> owners;          ///< in the order of the graph
  std::vector<uint32_t> owner_of;     ///< by node: index into `owners`, kNoOwner if it did not run
  std::string cut;                    ///< why calls are missing, or ""
  std::vector<Overwritten> overwritten;  ///< in the order of the graph
};

struct RankGraph {
  GraphPtr graph;
  std::map<int64_t, StepValues> steps;
};

/// Joins the steps of one rank and graph. `steps`: ascending, emptied.
RankGraph join_steps(int rank, int graph, std::vector<StepTable> steps);

}  // namespace msdbg::msprobe
