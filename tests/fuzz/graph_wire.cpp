// Graphs as sent by a training: a byte that selects SendMultiGraphs or SendGraph, then messages, each after two length bytes.
#include "fuzz/graph_walk.h"
#include "msdbg/wire.h"
#include "session/live/graph_assembly.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  live::GraphAssembly assembly(input.byte() % 2 != 0);
  while (!input.empty()) {
    const std::string_view message = input.chunk();
    debugger::Chunk chunk;
    if (chunk.ParseFromArray(message.data(), static_cast<int>(message.size()))) assembly.add(chunk);
  }
  for (const std::string& graph : assembly.finish()) {
    std::vector<std::string> notes;
    Result<GraphBuilder> builder = parse_graph(fuzz::bytes_of(graph), 0, -1, &notes);
    if (fuzz::good(builder)) fuzz::walk(*builder->build());
  }
  return 0;
}
