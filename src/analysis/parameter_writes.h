// The writes of a parameter, over the steps and graphs of a rank.
//
// The session's owner thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msdbg/session.h"

namespace msdbg {

/// One step of a graph that updates the parameter.
struct ParameterWrite {
  const Graph* graph = nullptr;
  int64_t step = 0;
  NodeId parameter = kNoNode;
  NodeId updater = kNoNode;  ///< the last operator of the graph that updates it
  uint64_t time = 0;         ///< when it ran; 0 when that was not recorded

  /// The value that this step left behind.
  TensorId value() const;
};

/// All writes of one parameter that left data in the dump, in the order in which they happened: by step, within a step by time.
class ParameterWrites {
 public:
  ParameterWrites(Session& session, int rank, const std::string& name);

  /// The last write before `graph` first used the parameter in `step`. Writes of other graphs in the same step count if their time
  /// is known to be earlier.
  std::optional<ParameterWrite> before(const Graph& graph, int64_t step) const;
  std::optional<ParameterWrite> before(const ParameterWrite& write) const;

 private:
  uint64_t time_of(const Graph& graph, int64_t step, NodeId node) const;
  uint64_t first_use(const Graph& graph, int64_t step, NodeId parameter) const;

  Session& session_;
  std::string name_;
  std::vector<ParameterWrite> writes_;
};

}  // namespace msdbg
