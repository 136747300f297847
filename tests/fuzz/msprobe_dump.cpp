// A dump of msprobe: for each of two steps the texts of dump.json, stack.json and construct.json. It is opened and examined completely,
// and its origins are looked for.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "fuzz/session_walk.h"
#include "msdbg/analysis.h"
#include "msdbg/msprobe.h"

namespace fs = std::filesystem;
using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fs::path root = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
  const fs::path dump = root / ("msdbg-fuzz-msprobe-" + std::to_string(::getpid()));
  std::error_code ignored;
  fuzz::Input input(data, size);
  for (const char* step : {"step0", "step1"}) {
    const fs::path folder = dump / step / "rank0";
    fs::create_directories(folder, ignored);
    for (const char* name : {"dump.json", "stack.json", "construct.json"}) {
      const std::string_view content = input.chunk();
      std::ofstream(folder / name, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    }
  }
  if (const auto session = open_msprobe(dump, {}); fuzz::good(session)) {
    fuzz::walk(**session);
    OriginOptions options;
    options.threads = 1;
    if (const Result<OriginResult> origins = find_origins(**session, options); fuzz::good(origins)) {
      for (const StepOrigins& step : origins->steps) {
        fuzz::require(!step.origins.empty() || !step.arrivals.empty(), "a step without an origin");
        for (const Origin& origin : step.origins) fuzz::require(origin.reached > 0, "an origin that does not reach itself");
      }
    }
    for (const GraphPtr& graph : (*session)->graphs()) {
      for (const Node& node : graph->nodes()) {
        fuzz::require(graph->find(node.name) != nullptr, "a node that has no name");
        for (const Edge& edge : node.inputs) fuzz::require(edge.node == kNoNode || edge.node < graph->nodes().size(), "an edge to nothing");
        const CallLinks links = graph->call_links(node.id);
        fuzz::require(links.caller == kNoNode || links.caller < graph->nodes().size(), "a caller that is no node");
        fuzz::require(links.forward == kNoNode || links.forward < graph->nodes().size(), "a forward call that is no node");
      }
    }
  }
  fs::remove_all(dump, ignored);
  return 0;
}
