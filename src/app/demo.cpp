// msdbg demo: the main workflow on a real dump that ships with msdbg.
#include <fmt/format.h>

#include <filesystem>

#include "app/context.h"
#include "app/output.h"
#include "app/program.h"
#include "app/raw_options.h"

namespace msdbg::app {
namespace {

constexpr std::string_view kDumpName = "lenet-lognan";

std::string demo_dump() {
  // Next to the installed program (works for a moved prefix), in the install location, in the build tree.
  std::error_code error;
  std::vector<std::filesystem::path> places;
  if (!program_file().folder.empty()) places.push_back(program_file().folder.parent_path() / "share/msdbg/demo-data");
  places.emplace_back(MSDBG_DEMO_INSTALL_DIR);
  places.emplace_back(MSDBG_DEMO_BUILD_DIR);
  for (const auto& place : places) {
    if (std::filesystem::exists(place / kDumpName, error)) return (place / kDumpName).string();
  }
  return "";
}

// Shows a command as a user would type it, then runs it.
int run_words(Options options, const std::vector<std::string>& words) {
  options.index = false;  // it would stay in the installed tree
  const Parsed parsed = parse_command(*find_command(words.front()), {words.begin() + 1, words.end()}, options);
  if (parsed.done) return report_failure(Status(Code::kInternal, "demo: " + parsed.err));
  return run_in_shell(parsed);
}

std::string typed(const std::vector<std::string>& words) {
  std::string out = "msdbg";
  for (const std::string& word : words) out += word.find(' ') == std::string::npos ? " " + word : fmt::format(" '{}'", word);
  return out;
}

struct Stop {
  std::string_view text;
  std::vector<std::string> words;
  int expected;
};

Result<int> run_demo(Context& context) {
  const Options& options = context.options();
  const std::string dump = demo_dump();
  if (dump.empty()) {
    return Status(Code::kNotFound,
                  fmt::format("the demo's dump '{}' is not installed; build the target msdbg_demo_data or reinstall msdbg", kDumpName));
  }
  // JSON is for programs: print only the finding.
  if (options.format != Format::kTable) return run_words(options, {"origin", dump});

  const Status greeting = context.write(
      "A LeNet-5 was trained for two steps with MindSpore 2.7.1, and a Log was added after a ReLU. Its printed losses,\n"
      "2.3046 and 2.3027, look healthy. The run left a dump behind; msdbg reads it without MindSpore.\n");
  if (!greeting.ok()) return greeting;
  const Stop walk[] = {
      {"1. Is anything wrong, and where first?", {"origin", dump}, kExitFindings},
      {"2. What went into it? 104 zeros: log(0) is -Inf.",
       {"show", dump, "Log-op0:input:0", "--step", "0", "--bins", "8", "--rows", "4"},
       kExitClean},
      {"3. Why do the losses look healthy? A ReLU turned every NaN into 0. A watchpoint says so in each step:",
       {"check", dump, "--on", "@activation", "--when", "TZ 100"},
       kExitFindings}};
  for (const Stop& stop : walk) {
    if (const Status written = context.write(fmt::format("\n{}\n\n  $ {}\n", stop.text, typed(stop.words))); !written.ok()) return written;
    const int status = run_words(options, stop.words);
    if (status != stop.expected) return status == kExitClean || status == kExitFindings ? kExitInput : status;
  }
  const Status bye = context.write(fmt::format("\nNow you:  msdbg {}      (the prompt; type help)\n", dump));
  if (!bye.ok()) return bye;
  return kExitClean;
}

Action declare_demo(const Declaration&) { return run_demo; }

}  // namespace

CommandEntry demo_command() {
  return {.name = "demo",
          .group = kStartGroup,
          .summary = "find a planted log(0) in a dump that ships with msdbg",
          .examples = {{""}, {"--format json"}},
          .declare = declare_demo,
          .readers = Readers::kProgram,
          .first = FirstWord::kNone};
}

}  // namespace msdbg::app
