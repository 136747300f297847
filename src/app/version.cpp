#include "app/version.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "msdbg/answers.h"
#include "msdbg/base.h"
#include "msdbg/simd.h"
#include "msdbg/supported.h"

namespace msdbg::app {
namespace {

std::vector<std::string> generations() {
  std::vector<std::string> out;
  for (const auto& [major, minor] : release_generations()) out.push_back(fmt::format("{}.{}", major, minor));
  return out;
}

}  // namespace

std::string version_text() {
  return fmt::format(
      "msdbg {}\n"
      "dumps        MindSpore {} to {}, msprobe {} to {}\n"
      "live         protocol generations {}\n"
      "SIMD target  {} (of {})\n"
      "index        version {}\n",
      kVersion, kFirstDumpRelease, kLastDumpRelease, kFirstMsprobe, kLastMsprobe, fmt::join(generations(), ", "), simd_target(),
      fmt::join(simd_targets(), ", "), kIndexVersion);
}

std::string version_json() {
  const std::vector<std::string_view> targets(simd_targets().begin(), simd_targets().end());
  return json_text({{"msdbg", kVersion},
                    {"dump_releases", {{"first", kFirstDumpRelease}, {"last", kLastDumpRelease}}},
                    {"msprobe_releases", {{"first", kFirstMsprobe}, {"last", kLastMsprobe}}},
                    {"protocol_generations", generations()},
                    {"simd", {{"target", simd_target()}, {"available", targets}}},
                    {"index_version", kIndexVersion}});
}

}  // namespace msdbg::app
