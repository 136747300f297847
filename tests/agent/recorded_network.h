// A training that looks like the recorded one to a debugger: names, types and order of the operators come from the recordings, the
// numbers do not (the recorded operators computed nothing).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "msdbg/agent.h"
#include "support/recorded_conversation.h"

namespace msdbg::test {

class RecordedNetwork {
 public:
  /// `version` is that of the recorded client; `wide` makes fc1.weight as large as in the recording of a large tensor.
  RecordedNetwork(const std::string& folder, const std::string& version, bool wide);

  const std::string& problem() const { return problem_; }
  agent::GraphDescription describe() const { return graph_; }
  /// Runs up to `steps` steps; returns how many ran.
  int train(agent::Agent& agent, int steps) const;

 private:
  void read_kernel_order(const std::string& folder, const std::string& version);
  void read_graph(const std::string& folder, const std::string& version, bool wide);
  const std::vector<float>& buffer(const std::string& name, const Shape& shape);

  std::string problem_;
  std::vector<std::string> kernels_;  // full names in execution order
  agent::GraphDescription graph_;
  std::map<std::string, std::vector<float>> buffers_;
};

}  // namespace msdbg::test
