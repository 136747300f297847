// Assembles graphs from the chunks of SendGraph and SendMultiGraphs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "session/live/exchange.h"

namespace msdbg::live {

/// Takes the chunks of one stream in order; call finish() at its end.
///
/// A graph ends with its stream or with a chunk marked `finished`. Releases 1.1 and 1.2 send the last slice of a large graph twice,
/// first without the mark, and may mark the first slice of the next one; this class handles both.
class GraphAssembly {
 public:
  static constexpr size_t kSlice = 3145728;  ///< content bytes of every slice except the last

  explicit GraphAssembly(bool several) : several_(several) {}

  void add(const debugger::Chunk& chunk);
  /// Returns the complete serialized GraphProtos; none for an empty stream.
  std::vector<std::string> finish();

 private:
  void end_graph();
  /// Whether the bytes end at the end of a field of the graph.
  bool is_whole();

  bool several_;
  std::string bytes_;
  size_t last_begin_ = 0;    ///< where the newest chunk of bytes_ starts
  size_t whole_ = 0;         ///< this many bytes of bytes_ are complete fields
  std::vector<std::string> graphs_;
};

}  // namespace msdbg::live
