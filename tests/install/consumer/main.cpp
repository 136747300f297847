// A native tool built on the installed libraries: prints the origins of a dump.
#include <cstdio>

#include "msdbg/analysis.h"
#include "msdbg/dump.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto session = msdbg::open_dump(argv[1]);
  if (!session) return std::fprintf(stderr, "%s\n", session.status().message().c_str()), 3;
  const auto result = msdbg::find_origins(**session, {});
  if (!result) return 3;
  for (const auto& step : result->steps) {
    for (const auto& origin : step.origins) std::printf("%s\n", (*session)->tensor_name(origin.tensor).c_str());
  }
  return 0;
}
