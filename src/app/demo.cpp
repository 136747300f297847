// msdbg demo: the main job on a real dump that ships with msdbg.
#include <fmt/format.h>

#include <filesystem>

#include "app/output.h"
#include "app/run.h"

namespace msdbg::app {
namespace {

constexpr std::string_view kDumpName = "lenet-lognan";

std::string demo_dump() {
  // Beside the installed program (works for a moved prefix), at the installed place, in the build tree.
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::filesystem::path> places;
  if (!error) places.push_back(self.parent_path().parent_path() / "share/msdbg/demo-data");
  places.emplace_back(MSDBG_DEMO_INSTALL_DIR);
  places.emplace_back(MSDBG_DEMO_BUILD_DIR);
  for (const auto& place : places) {
    if (std::filesystem::exists(place / kDumpName, error)) return (place / kDumpName).string();
  }
  return "";
}

// Runs one command of the walk after showing what a person would type.
int say_and_run(const Options& options, std::string_view text, std::string_view typed, int (*command)(const Options&),
                const Options& call) {
  if (options.format == Format::kTable) {
    const Status status = write_result(Options{}, fmt::format("\n{}\n\n  $ {}\n", text, typed));
    if (!status.ok()) return report_failure(status);
  }
  return command(call);
}

}  // namespace

int run_demo(const Options& options) {
  const std::string dump = demo_dump();
  if (dump.empty()) {
    return report_failure(
        Status(Code::kNotFound,
               fmt::format("the demo's dump '{}' is not installed; build the target msdbg_demo_data or reinstall msdbg", kDumpName)));
  }
  Options call = options;
  call.dump = dump;
  call.when = "nan or inf";
  // JSON is for programs: they get the finding and nothing else.
  if (options.format != Format::kTable) return run_origin(call);

  const Status hello =
      write_result(Options{},
                   "A LeNet-5 was trained for two steps with MindSpore 2.7.1, and somebody put a Log behind a ReLU. Its printed losses,\n"
                   "2.3046 and 2.3027, look healthy. The run left a dump behind; msdbg reads it without MindSpore.\n");
  if (!hello.ok()) return report_failure(hello);
  int status = say_and_run(options, "1. Is anything wrong, and where first?", fmt::format("msdbg origin {}", dump), run_origin, call);
  if (status != kExitFindings) return status == kExitClean ? kExitInput : status;
  call.subject = "Log-op0:input:0";
  call.steps = IntSet::of(0);
  call.bins = 8;
  call.rows = 4;
  status = say_and_run(options, "2. What went into it? 104 zeros: log(0) is -Inf.",
                       fmt::format("msdbg show {} Log-op0:input:0 --step 0 --bins 8 --rows 4", dump), run_show, call);
  if (status != kExitClean) return status;
  Options gate = options;
  gate.dump = dump;
  gate.watches = {{"@activation", "TZ zero_percentage_ge=100"}};
  status = say_and_run(options, "3. Why do the losses look healthy? A ReLU turned every NaN into 0. A watchpoint says so in each step:",
                       fmt::format("msdbg check {} --on @activation --when 'TZ 100'", dump), run_check, gate);
  if (status != kExitFindings) return status == kExitClean ? kExitInput : status;
  const Status bye = write_result(Options{}, fmt::format("\nNow you:  msdbg {}      (the prompt; type help)\n", dump));
  return bye.ok() ? kExitClean : report_failure(bye);
}

}  // namespace msdbg::app
