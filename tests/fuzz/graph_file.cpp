// A graph file of a dump, of either flavour: the input is the file.
#include "fuzz/graph_walk.h"
#include "msdbg/wire.h"

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> notes;
  Result<GraphBuilder> builder = parse_graph(std::as_bytes(std::span(data, size)), 0, 0, &notes);
  if (fuzz::good(builder)) fuzz::walk(*builder->build());
  return 0;
}
