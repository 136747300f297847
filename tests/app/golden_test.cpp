// Transcripts: tests/golden/*.txt contain the user's input and msdbg's output.
//
//   # text            a comment
//   $ msdbg ARGS      a command, run by a shell in the transcript's own directory with links to the unpacked test data; the
//                     lines up to the next `$` are its output (both streams); the last one is `[exit N]` if N is not 0
//   @ open PATH       opens a dump at the prompt; the `> ` lines that follow are entries of that prompt
//   @ live            a training process in memory (tests/script/support.h) at the prompt, held before its first step
//   @ prompt          the line below is the current prompt
//   @ width N         lays out what follows for N columns; no line of its output may be longer
//   > ENTRY           an entry; the lines after it are its output
//
// MSDBG_UPDATE_GOLDEN=1 rewrites the files; read the diff.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "msdbg/dump.h"
#include "msdbg/terminal.h"
#include "app/live.h"
#include "app/options.h"
#include "app/scripting.h"
#include "script/support.h"

namespace msdbg::app {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void replace_all(std::string* text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text->find(what, at)) != std::string::npos; at += with.size()) text->replace(at, what.size(), with);
}

// Transcripts write files, and several of them run at the same time.
class OwnFolder {
 public:
  OwnFolder() {
    std::string name = (fs::temp_directory_path() / "msdbg-golden-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder " + name);
    path_ = name;
    for (const auto& entry : fs::directory_iterator(MSDBG_TEST_DATA)) fs::create_symlink(entry.path(), path_ / entry.path().filename());
    fs::current_path(path_);
  }
  ~OwnFolder() {
    std::error_code ignored;
    fs::current_path(MSDBG_TEST_DATA, ignored);
    fs::remove_all(path_, ignored);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

 private:
  fs::path path_;
};

// Only paths may differ between machines.
std::string normalised(std::string text) {
  replace_all(&text, fs::current_path().string(), "FOLDER");
  replace_all(&text, MSDBG_TEST_DATA, "DATA");
  replace_all(&text, MSDBG_EXAMPLES_DIR, "EXAMPLES");
  replace_all(&text, fs::path(MSDBG_PROGRAM).parent_path().string(), "PROGRAM");
  return text;
}

std::string run_command(const std::string& typed) {
  // The shell is that of the machine. When the program is for another one, only the emulator can start it.
  const std::string program = std::string(MSDBG_EMULATOR " ") + MSDBG_PROGRAM;
  std::string command = typed;
  if (command.rfind("msdbg", 0) == 0) command.replace(0, 5, program);
  replace_all(&command, "| msdbg ", "| " + program + " ");
  replace_all(&command, "EXAMPLES/", std::string(MSDBG_EXAMPLES_DIR) + "/");
  // `exec` would lose pipes; a subshell collects both streams in order.
  const std::string shell = "{ " + command + "; } 2>&1 < /dev/null";
  FILE* pipe = ::popen(shell.c_str(), "r");
  if (pipe == nullptr) return "popen failed\n";
  std::string output;
  char block[4096];
  for (size_t n; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) output.append(block, n);
  const int status = ::pclose(pipe);
  if (!output.empty() && output.back() != '\n') output += '\n';
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code != 0) output += "[exit " + std::to_string(code) + "]\n";
  return normalised(output);
}

// The prompt in this process: exactly what `msdbg DUMP` evaluates, without the terminal.
class PromptRunner {
 public:
  void open(const std::string& path) {
    auto script = make_script(Options{});
    ASSERT_TRUE(script) << script.status().message();
    script_ = std::move(*script);
    auto session = open_dump(std::string(MSDBG_TEST_DATA "/") + path);
    ASSERT_TRUE(session) << session.status().message();
    script_->set_session(std::move(*session));
  }

  void open_live() {
    auto script = make_script(Options{}, &events_);
    ASSERT_TRUE(script) << script.status().message();
    script_ = std::move(*script);
    auto training = testing::small_training();
    ASSERT_TRUE(training->wait_until_held({}).ok());
    training->take_events();
    script_->set_session(std::move(training));
  }
  std::string prompt() { return script_ == nullptr ? "no '@ open' above\n" : script_->prompt() + "\n"; }

  std::string enter(const std::string& entry) {
    if (script_ == nullptr) return "no '@ open' above\n";
    pending_ += pending_.empty() ? entry : "\n" + entry;
    ::testing::internal::CaptureStdout();  // print() writes there
    const Script::Eval result = script_->eval(pending_);
    std::string output = ::testing::internal::GetCapturedStdout();
    if (result.state == Script::EvalState::kIncomplete) return output;
    pending_.clear();
    if (!result.output.empty()) output += result.output + "\n";
    return normalised(output);
  }

 private:
  EventPrinter events_{stdout};
  std::unique_ptr<Script> script_;
  std::string pending_;
};

std::string replay(const std::vector<std::string>& lines) {
  // Targets differ in the last digit of a sum; transcripts should not.
  ::setenv("MSDBG_SIMD", "scalar", 1);
  ::setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
  EXPECT_TRUE(set_simd_target("scalar").ok());
  std::string out;
  PromptRunner prompt;
  ::unsetenv("MSDBG_WIDTH");
  size_t width = SIZE_MAX;
  const auto fits = [&](const std::string& asked, const std::string& output) {
    std::istringstream text(output);
    for (std::string line; std::getline(text, line);) {
      const size_t word = std::min(line.find_first_not_of(' '), line.size());
      if (line.find(' ', word) == std::string::npos) continue;  // a path is not broken
      EXPECT_LE(display_width(line), width) << asked << "\nprints\n" << line;
    }
    return output;
  };
  for (const std::string& line : lines) {
    const std::string rest = line.size() > 2 ? line.substr(2) : "";
    if (line.rfind("@ width ", 0) == 0) {
      out += line + "\n";
      width = std::stoul(line.substr(8));
      ::setenv("MSDBG_WIDTH", line.c_str() + 8, 1);
    } else if (line == "#" || (line.rfind("# ", 0) == 0 && line.rfind("#  ", 0) != 0)) {  // "#  " heads a table with numbered rows
      out += line + "\n";
    } else if (line.rfind("$ ", 0) == 0) {
      out += line + "\n" + fits(line, run_command(rest));
    } else if (line.rfind("@ open ", 0) == 0) {
      out += line + "\n";
      prompt.open(line.substr(7));
    } else if (line == "@ live") {
      out += line + "\n";
      prompt.open_live();
    } else if (line == "@ prompt") {
      out += line + "\n" + prompt.prompt();
    } else if (line.rfind("> ", 0) == 0) {
      out += line + "\n" + fits(line, prompt.enter(rest));
    }
  }
  ::unsetenv("MSDBG_WIDTH");
  return out;
}

std::vector<std::string> transcripts() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(MSDBG_GOLDEN_DIR)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, TranscriptIsReproduced) {
  const fs::path path = fs::path(MSDBG_GOLDEN_DIR) / (GetParam() + ".txt");
  const auto lines = read_lines(path);
  ASSERT_FALSE(lines.empty()) << path;
  const OwnFolder folder;
  const std::string got = replay(lines);
  if (std::getenv("MSDBG_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << got;
    return;
  }
  std::string expected;
  for (const std::string& line : lines) expected += line + "\n";
  EXPECT_EQ(got, expected) << "MSDBG_UPDATE_GOLDEN=1 rewrites " << path;
}

INSTANTIATE_TEST_SUITE_P(Transcripts, Golden, ::testing::ValuesIn(transcripts()), [](const auto& param) {
  std::string name = param.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST(GoldenFiles, EveryFormatIsTheSameForAnyNumberOfThreads) {
  const OwnFolder folder;
  for (const std::string dump : {"dumps/lenet-2.7.1-lognan", "dumps/lenet-2.7.1-explode"}) {
    for (const std::string format : {"table", "json", "jsonl", "csv", "markdown", "junit", "sarif"}) {
      const std::string command = "msdbg check " + dump + " --rules recommended,TO --format " + format + " --threads ";
      const std::string one = run_command(command + "1");
      EXPECT_GT(one.size(), 300u) << one;
      EXPECT_EQ(one, run_command(command + "4")) << command;
    }
  }
}

TEST(GoldenFiles, ThereAreTranscripts) { EXPECT_GE(transcripts().size(), 5u); }

}  // namespace
}  // namespace msdbg::app
