// MindSpore's own dump as the source of a graph: its description, and the values of one iteration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "msdbg/agent.h"
#include "msdbg/dump_step.h"

namespace msdbg::agent {

/// What publish_dump() needs later: each graph of the framework's with its operators, which have numbers from `first` to before `last`.
struct DumpSource {
  struct Part {
    int graph = 0;
    NodeIndex first = 0, last = 0;
    std::unique_ptr<StepReader> reader;
  };
  std::vector<Part> parts;

  /// The only one, or else the one whose values are in `directory` (`<net>/<graph>/<iteration>`); null if there is none.
  const Part* part_of(const std::string& directory) const;
};

/// A file whose header was read.
struct DumpedValue {
  DType dtype = DType::kUnknown;
  Shape shape;
  Fetch fetch;  ///< opens the file again
};

/// Error: as FileContent::problem.
Result<DumpedValue> open_dumped(const StepValue& value);

}  // namespace msdbg::agent
