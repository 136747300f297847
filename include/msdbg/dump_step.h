// A dump that a running training writes: its graph is read once, then one directory of values after the other. Nothing is kept of a
// directory, which may be gone when the next one is listed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "msdbg/graph.h"
#include "msdbg/tensor_file.h"

namespace msdbg {

/// A file with one output of an operator.
struct StepValue {
  NodeId node = kNoNode;
  uint32_t slot = 0;
  std::string path;
  FileHints hints;
};

class StepReader {
 public:
  /// `rank_directory` contains `graphs` and, for the order of execution, `execution_order` with the files of graph number `graph`.
  /// Error: kNotFound without the graph file, kIoError, kCorrupt.
  static Result<std::unique_ptr<StepReader>> open(const std::string& rank_directory, int graph);
  ~StepReader();

  const Graph& graph() const;
  /// The outputs of operators in `directory` (`<net>/<graph>/<iteration>`), in order of execution, then slot. Of a value that was
  /// written several times, as in a loop, the last one. Files of other nodes, and those that no node fits, are left out.
  /// Error: kNotFound, kIoError if the directory cannot be listed.
  Result<std::vector<StepValue>> list(const std::string& directory);

 private:
  struct State;
  explicit StepReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace msdbg
