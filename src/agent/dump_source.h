// MindSpore's own dump as the source of a graph: its description, and the values of one iteration.
#pragma once

#include <memory>

#include "msdbg/agent.h"
#include "msdbg/dump_step.h"

namespace msdbg::agent {

/// What publish_dump() needs later.
struct DumpSource {
  std::unique_ptr<StepReader> reader;
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
