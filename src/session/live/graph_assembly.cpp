#include "session/live/graph_assembly.h"

#include <span>
#include <utility>

#include "msdbg/wire_fields.h"

namespace msdbg::live {
// Examines each byte once, however many chunks claim to be the last.
bool GraphAssembly::is_whole() {
  WireReader reader(std::as_bytes(std::span(bytes_)).subspan(whole_));
  uint64_t end = 0;
  for (WireField field; reader.next(field);) end = reader.at();
  whole_ += end;
  return whole_ == bytes_.size();
}

void GraphAssembly::add(const debugger::Chunk& chunk) {
  const std::string& buffer = chunk.buffer();
  const bool marked = several_ && chunk.finished();
  const bool repeated = marked && !bytes_.empty() && bytes_.size() - last_begin_ == buffer.size() &&
                        bytes_.compare(last_begin_, std::string::npos, buffer) == 0;
  if (!repeated) {
    last_begin_ = bytes_.size();
    bytes_ += buffer;
  }
  if (!marked) return;
  // A complete slice with the mark is either the real end or the stale mark of a graph that continues.
  if (!repeated && buffer.size() == kSlice && !is_whole()) return;
  end_graph();
}

void GraphAssembly::end_graph() {
  if (!bytes_.empty()) graphs_.push_back(std::move(bytes_));
  bytes_.clear();
  last_begin_ = whole_ = 0;
}

std::vector<std::string> GraphAssembly::finish() {
  end_graph();
  return std::move(graphs_);
}

}  // namespace msdbg::live
