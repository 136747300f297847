// The writes of parameters, over the steps and graphs of a rank.
//
// The session's owner thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msdbg/session.h"

namespace msdbg {

/// One step of a graph that updates the parameter.
struct ParameterWrite {
  const Graph* graph = nullptr;
  int64_t step = 0;
  NodeId parameter = kNoNode;
  NodeId updater = kNoNode;  ///< the last operator of the graph that updates it

  /// The value that this step left behind.
  TensorId value() const { return {graph->rank(), graph->id(), step, 0, parameter, {}}; }
};

/// The value that a call of an optimizer takes and changes, such as a momentum, as an earlier step left it: the output of the last call that
/// changed it there. None if no call is known.
std::optional<TensorId> state_before(Session& session, const Graph& graph, NodeId call, int64_t step);

/// The writes that left data in the dump, in the order in which they happened: by step, within a step by the time of the files. What
/// is known about a parameter is collected when it is first asked for.
class ParameterWrites {
 public:
  explicit ParameterWrites(Session& session) : session_(session) {}

  /// The last write before `graph` first used the parameter in `step`. Writes of other graphs in the same step count if their time
  /// is known to be earlier.
  std::optional<ParameterWrite> before(const Graph& graph, NodeId parameter, int64_t step);
  std::optional<ParameterWrite> before(const ParameterWrite& write);

 private:
  /// A graph that updates the parameter, and the steps in which it ran; of recorded calls, one of them.
  struct Writer {
    const Graph* graph = nullptr;
    NodeId parameter = kNoNode, updater = kNoNode;
    std::vector<int64_t> steps;  ///< ascending

    ParameterWrite in(int64_t step) const { return {graph, step, parameter, updater}; }
    bool ran(int64_t step) const;
  };
  const std::vector<Writer>& writers(int rank, const std::string& name);
  std::optional<ParameterWrite> last_before(const std::vector<Writer>& writers, int64_t step) const;
  uint64_t time_of(const Graph& graph, int64_t step, NodeId node) const;
  uint64_t first_use(const Graph& graph, int64_t step, NodeId parameter) const;

  Session& session_;
  std::map<std::pair<int, std::string>, std::vector<Writer>> writers_;  ///< by rank and name
};

}  // namespace msdbg
