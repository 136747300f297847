#include "session/live/recorded_training.h"

#include <fmt/format.h>

#include <optional>

#include "msdbg/wire.h"
#include "session/live/graph_assembly.h"
#include "session/live/recording_index.h"

namespace msdbg::live {
namespace {

class Search {
 public:
  explicit Search(RecordingReader& reader) : reader_(reader) {}

  void take(const std::vector<RecordedCall>& calls) {
    for (const RecordedCall& call : calls) {
      if (call.kind == WireEvent::Kind::kHandshake) take_handshake(call);
      else if (call.kind == WireEvent::Kind::kGraphs) take_graphs(call);
    }
  }
  RecordedTraining found;

 private:
  void take_handshake(const RecordedCall& call) {
    debugger::Metadata metadata;
    if (call.frames.empty() || !read(call.frames.front(), &metadata)) return;
    found.handshake = std::move(metadata);
    fresh_ = true;
  }
  void take_graphs(const RecordedCall& call) {
    GraphAssembly assembly(call.rpc == Rpc::kSendMultiGraphs);
    for (const uint64_t frame : call.frames) {
      debugger::Chunk chunk;
      if (!read(frame, &chunk)) return;
      assembly.add(chunk);
    }
    // Releases that repeat the handshake for every graph send all graphs again.
    if (std::exchange(fresh_, false)) found.graphs.clear();
    for (std::string& bytes : assembly.finish()) found.graphs.push_back(std::move(bytes));
  }
  template <typename Message>
  bool read(uint64_t offset, Message* message) {
    reader_.seek(offset);
    Frame frame;
    return reader_.next(&frame) && message->ParsePartialFromString(frame.payload);
  }

  RecordingReader& reader_;
  bool fresh_ = false;
};

}  // namespace

bool RecordedTraining::may_be(const debugger::Metadata& wait) const {
  const bool ascend = wait.backend() == "Ascend", was_ascend = handshake.backend() == "Ascend";
  return ascend == was_ascend && (wait.cur_node().empty() || operators.count(wait.cur_node()) > 0);
}

Result<std::vector<RecordedTraining>> read_recorded_trainings(const std::string& path) {
  Result<std::unique_ptr<RecordingReader>> reader = RecordingReader::open(path);
  if (!reader) return reader.status();
  std::vector<RecordedTraining> out;
  bool any = false;
  for (const RecordingIndex& index : index_recording(**reader)) {
    Search search(**reader);
    for (const RecordedHold& hold : index.holds) search.take(hold.before);
    for (const std::string& bytes : search.found.graphs) {
      Result<GraphBuilder> builder = parse_graph(std::as_bytes(std::span(bytes)), 0, -1, nullptr);
      if (!builder) continue;
      const GraphPtr graph = builder->build();
      for (const Node& node : graph->nodes()) {
        if (node.kind == NodeKind::kOperator) search.found.operators.insert(node.name);
      }
    }
    any = any || !search.found.operators.empty();
    out.push_back(std::move(search.found));
  }
  if (!any) return Status(Code::kNotFound, fmt::format("{}: the recording has no graph", path));
  return out;
}

}  // namespace msdbg::live
