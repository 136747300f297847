// A dump whose names try to control the terminal, through every command of the program: with files, pipes and a terminal.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/terminal.h"
#include "dump/dump_support.h"
#include "support/hostile_names.h"

namespace msdbg::testing {
namespace {

const std::string kMatMul = "Default/" + kHostile + "/MatMul-op1", kRelu = "Default/net/" + kHostile + "-op2";

// How releases since 2.4 fold operator names into file names.
std::string folded(std::string name) {
  for (char& c : name) {
    if (c == '/' || c == '.' || c == ' ' || c == '\\') c = '_';
  }
  return name;
}

class HostileDump : public ::testing::Test {
 protected:
  HostileDump() {
    dir_.text("rank_0/graphs/ms_output_trace_code_graph_0.pb",
              graph_pb("graph " + kHostile, "0", {kHostile + ".weight"},
                       {{kMatMul, "Mat" + kHostile, {kHostile + ".weight"}},
                        {kRelu, "ReLU", {kMatMul}},
                        {"Default/Log-op3", "Log", {kRelu}}}));
    for (int step = 0; step < 4; ++step) {
      put(step, "MatMul", kMatMul, {1, 2, 3.5 + step});
      put(step, "ReLU", kRelu, {0, 1, 2});
      put(step, "Log", "Default/Log-op3", {step < 2 ? 0.5 : -INFINITY, 1, 0});
    }
  }

  void put(int step, const std::string& type, const std::string& name, std::initializer_list<double> values) {
    dir_.npy("rank_0/Net/0/" + std::to_string(step) + "/" + type + "." + folded(name) + ".0.0." + std::to_string(1000 + step) +
                 ".output.0.DefaultFormat.Float32.npy",
             values);
  }

  /// Both streams of `msdbg WORDS`, where DUMP stands for the dump.
  std::string run(std::string words) {
    for (size_t at; (at = words.find("DUMP")) != std::string::npos;) words.replace(at, 4, dir_.path());
    const std::string shell = std::string(MSDBG_PROGRAM) + " " + words + " 2>&1 < /dev/null";
    FILE* pipe = ::popen(shell.c_str(), "r");
    std::string output;
    char block[4096];
    for (size_t n; pipe != nullptr && (n = std::fread(block, 1, sizeof block, pipe)) > 0;) output.append(block, n);
    const int status = ::pclose(pipe);
    EXPECT_TRUE(WIFEXITED(status)) << words;
    return output;
  }

  TempDir dir_;
};

TEST_F(HostileDump, NoTableLetsTheNamesAct) {
  std::string seen;
  for (const char* words :
       {"nodes DUMP", "nodes DUMP --wide", "stats DUMP", "stats DUMP --wide --slots all", "show DUMP MatMul-op1",
        "show DUMP Log-op3", "doctor DUMP", "doctor DUMP --wide", "check DUMP", "check DUMP --wide --group",
        "check DUMP --rules all", "check DUMP --on @all --when TO", "check DUMP --on 'Default/**' --when 'max(x) > 1'",
        "origin DUMP", "origin DUMP --wide", "trend DUMP max", "trend DUMP max --wide", "bisect DUMP Log-op3", "bisect DUMP @all",
        "propagation DUMP Log-op3 --step 3", "propagation DUMP Log-op3 --step 3 --up", "why DUMP MatMul-op1",
        "why DUMP MatMul-op1:input:0", "why DUMP nothing", "list DUMP", "guide DUMP", "diff DUMP DUMP", "diff DUMP DUMP --wide",
        "plan DUMP @all", "nodes DUMP nothing", "show DUMP op", "repl DUMP --batch -e nodes -e info", "run /dev/null DUMP",
        "report DUMP -o /dev/null"}) {
    for (const char* colour : {"", " --color always"}) {
      const bool has_colour = std::string_view(words).starts_with("run") || std::string_view(words).starts_with("guide");
      if (*colour != '\0' && has_colour) continue;
      const std::string output = run(std::string(words) + colour);
      expect_harmless(output, std::string(words) + colour);
      seen += output;
    }
  }
  EXPECT_NE(seen.find("training step 9 held > forged"), std::string::npos);
}

TEST_F(HostileDump, JsonKeepsTheNamesAsTheyAre) {
  const auto json = nlohmann::json::parse(run("nodes DUMP --format json"));
  // A byte that is not UTF-8 has no representation in JSON.
  const std::string expected = "Default/net/" + kHostile.substr(0, kHostile.size() - 1) + "\xef\xbf\xbd-op2";
  bool found = false;
  for (const auto& node : json["nodes"]) found = found || node["name"] == expected;
  EXPECT_TRUE(found) << json.dump(2, ' ', true, nlohmann::json::error_handler_t::replace);
}

TEST_F(HostileDump, ATerminalGetsJsonAndCsvDefused) {
  for (const char* format : {"json", "jsonl", "csv", "markdown"}) {
    Terminal terminal({"trend", dir_.path(), "max", "--format", format});
    EXPECT_EQ(terminal.wait_for_exit(), 0) << format;
    std::string screen = terminal.screen();
    std::erase(screen, '\r');  // the terminal's own
    for (const std::string_view act : {"\x1b[31mRED", "\x1b[2J", "\xc2\x9b", "\xe2\x80\xae", "\x07"}) {
      EXPECT_EQ(screen.find(act), std::string::npos) << format << ":\n" << screen;
    }
  }
}

}  // namespace
}  // namespace msdbg::testing
