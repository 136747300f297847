// Graphs from the chunks of SendGraph and SendMultiGraphs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "session/live/exchange.h"

namespace msdbg::live {

/// The chunks of one stream, in order; finish() at its end.
///
/// A graph ends with its stream or with a chunk marked `finished`. Releases 1.1 and 1.2 send the last slice of a large
/// graph twice, first without the mark, and may mark the first slice of the next one; both are seen through.
class GraphAssembly {
 public:
  static constexpr size_t kSlice = 3145728;  ///< content bytes of every slice but the last

  explicit GraphAssembly(bool several) : several_(several) {}

  void add(const debugger::Chunk& chunk);
  /// Each complete serialized GraphProto; an empty stream gives none.
  std::vector<std::string> finish();

 private:
  void end_graph();
  /// The bytes end where a field of the graph ends.
  bool is_whole();

  bool several_;
  std::string bytes_;
  size_t last_begin_ = 0;    ///< where the newest chunk of bytes_ starts
  size_t whole_ = 0;         ///< so many bytes of bytes_ are whole fields
  std::vector<std::string> graphs_;
};

}  // namespace msdbg::live
