// The program and the prompt read the same commands: the same words give the same output in both.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "app/command.h"
#include "app/describe.h"
#include "app/help.h"
#include "app/scripting.h"

namespace msdbg::app {
namespace {

constexpr const char* kDump = "dumps/lenet-2.7.1-lognan";

struct Typed {
  std::string command, words;
  bool names_dump = true;  ///< the program's form has DUMP after the command
};

void PrintTo(const Typed& typed, std::ostream* out) { *out << typed.command << " " << typed.words; }

const Typed kTyped[] = {
    {"check", ""},
    {"check", "--steps 0 --on '@activation' --when 'TZ 50' --group --format csv"},
    {"check", "--rules 'default and not TO or TZ' --format json"},
    {"check", "--rules TX"},
    {"check", "--stepz 0"},
    {"origin", "--steps 0 --when inf"},
    {"origin", "--format json"},
    {"stats", "@weight --steps all"},
    {"stats", "op:ReLU or @loss --steps 1 --slots all --format jsonl"},
    {"stats", "relu --steps 7"},
    {"show", "Log-op0:input:0[0:2,:] --step 1 --bins 4"},
    {"show", "conv1.weight --step 1 --previous --sort difference --rows 3"},
    {"show", ""},
    {"nodes", "relu and not @gradient"},
    {"nodes", "nothing-like-it"},
    {"doctor", ""},
    {"doctor", "--values"},
    {"diff", "dumps/lenet-2.7.1-ok conv1.weight or fc2.weight"},
    {"diff", "--steps-a 0 --steps-b 1 @loss --format json"},
    {"bisect", "fc2.weight"},
    {"bisect", "@gradient --when 'max(abs(x)) > 100' --format json"},
    {"repro", "Log-op0 -o /dev/null/bundle"},
    {"convert", "Log-op0 -o dumps/lenet-2.7.1-lognan/converted"},
    {"convert", "Log-op0 --steps 0 -o /dev/null/converted"},
    {"hist", "fc1.weight --steps 0"},
    {"hist", "fc1.weight --steps all --bins 10 --format csv"},
    {"hist", "@gradient --exponents --step 1 --format json"},
    {"replicas", ""},
    {"replicas", "--format json"},
    {"layers", ""},
    {"layers", "fc1 --format csv"},
    {"layers", "--by-layer --format markdown"},
    {"trend", "abs_mean @loss --format markdown"},
    {"trend", "abs_meen @loss"},
    {"propagation", "Log-op0 --step 0"},
    {"propagation", "fc2.weight --up --step 1 --format dot"},
    {"why", "conv1.weight --step 7"},
    {"list", "train.py --rules TO --context 0"},
    {"rules", "list --rules 'TO or TZ'", false},
    {"rules", "info dead-relu", false},
    {"rules", "dead-relu", false},
    {"report", "-o report.md"},
    {"guide", "--yes --format json"},
    {"plan", "op:Log --steps 0:3"},
    {"plan", "--around Log-op0 --hops 1 --describe"},
    {"ckpt", "show checkpoints/lenet-2.7.1-explode/lenet-1_1.ckpt conv1.weight", false},
    {"ckpt", "diff checkpoints/lenet-2.7.1-explode/lenet-1_0.ckpt checkpoints/lenet-2.7.1-explode/lenet-1_1.ckpt --wide", false},
    {"ckpt", "match checkpoints/lenet-2.7.1-explode/lenet-1_1.ckpt"},
};

// Suggested commands are written for the place; everything else is identical.
std::string without_hints(const std::string& text) {
  static const std::regex typed("msdbg ([a-z]+) " + std::string(kDump)), help("; help [a-z]+ shows what is possible|(report.md): .*");
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.rfind("next: ", 0) == 0 || line.rfind("msdbg ", 0) == 0) continue;
    out += std::regex_replace(std::regex_replace(line, help, "$1"), typed, "$1") + "\n";
  }
  return out;
}

class TwoReaders : public ::testing::TestWithParam<Typed> {
 protected:
  void SetUp() override { std::filesystem::current_path(MSDBG_TEST_DATA); }

  static std::string in_shell(const Typed& typed) {
    std::string words = typed.words;
    std::string command = std::string("MSDBG_SIMD=scalar ") + MSDBG_PROGRAM + " " + typed.command + " ";
    if (typed.command == "ckpt" && typed.names_dump) {
      const size_t verb = words.find(' ');  // the dump follows the verb
      words.insert(verb, std::string(" ") + kDump);
    } else if (typed.names_dump) {
      command += std::string(kDump) + " ";
    }
    FILE* pipe = ::popen(("{ " + command + words + "; } 2>&1 < /dev/null").c_str(), "r");
    std::string output;
    char block[4096];
    for (size_t n; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) output.append(block, n);
    const int status = ::pclose(pipe);
    failed_ = WIFEXITED(status) && (WEXITSTATUS(status) == kExitUsage || output.rfind("msdbg: ", 0) == 0);
    return output.rfind("msdbg: ", 0) == 0 ? output.substr(7) : output;
  }

  static std::string at_prompt(const Typed& typed) {
    EXPECT_TRUE(set_simd_target("scalar").ok());
    auto script = make_script(Options{});
    EXPECT_TRUE(script.ok());
    auto session = open_dump(kDump);
    EXPECT_TRUE(session.ok());
    (*script)->set_session(std::move(*session));
    // Tables on the prompt's screen have row numbers; those in files are identical to the program's.
    static const std::set<std::string> kNumbered{"check", "stats", "origin", "trend", "diff"};
    const bool numbered = typed.words.find("--format") == std::string::npos && kNumbered.contains(typed.command);
    const std::string file = ::testing::TempDir() + "two-readers.txt";
    const Script::Eval eval = (*script)->eval(typed.command + " " + typed.words + (numbered ? " -o " + file : ""));
    EXPECT_EQ(eval.state == Script::EvalState::kError, failed_) << eval.output;
    if (numbered && !failed_) return content(file);
    std::string output = eval.output.rfind("error: ", 0) == 0 ? eval.output.substr(7) : eval.output;
    if (eval.state == Script::EvalState::kError && output.rfind(typed.command + ": ", 0) == 0)
      output.erase(0, typed.command.size() + 2);
    return output;
  }

  static std::string content(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  static inline bool failed_ = false;
};

TEST_P(TwoReaders, GiveTheSameAnswer) {
  const std::string shell = without_hints(in_shell(GetParam())), prompt = without_hints(at_prompt(GetParam()));
  EXPECT_FALSE(shell.empty());
  EXPECT_EQ(shell, prompt);
}

INSTANTIATE_TEST_SUITE_P(Commands, TwoReaders, ::testing::ValuesIn(kTyped), [](const auto& param) {
  return param.param.command + std::to_string(param.index);
});

TEST(CommandTable, EveryCommandOfBothReadersIsTriedInBoth) {
  std::set<std::string> tried;
  for (const Typed& typed : kTyped) tried.insert(typed.command);
  for (const CommandEntry& entry : command_table()) {
    EXPECT_TRUE(entry.readers != Readers::kBoth || tried.contains(std::string(entry.name))) << entry.name;
  }
}

TEST(CommandTable, EveryCommandDescribesItself) {
  const auto list = nlohmann::json::parse(commands_json());
  EXPECT_EQ(list.size(), command_table().size());
  for (const auto& command : list) {
    const std::string name = command["name"];
    EXPECT_FALSE(command["summary"].get<std::string>().empty()) << name;
    EXPECT_FALSE(command["examples"].empty()) << name;
    EXPECT_EQ(command["usage"].get<std::string>().rfind(name, 0), 0u) << name;
    for (const auto& option : command["options"]) EXPECT_FALSE(option["help"].get<std::string>().empty()) << name << option;
    for (const auto& word : command["words"]) EXPECT_FALSE(word["help"].get<std::string>().empty()) << name << word;
  }
}

// The prompt omits the dump and the options of the program as a whole. All other options are the program's.
TEST(CommandTable, BothReadersTakeTheSameOptions) {
  const std::set<std::string> of_the_program{"--color", "--no-pager", "--verbose", "--log"};
  for (const CommandEntry& entry : command_table()) {
    if (entry.readers != Readers::kBoth) continue;
    const auto names = [&](Place place) {
      std::set<std::string> found;
      for (const auto& option : describe(entry, place).options) {
        if (!of_the_program.contains(option.names.back())) found.insert(option.names.back());
      }
      return found;
    };
    EXPECT_EQ(names(Place::kShell), names(Place::kPrompt)) << entry.name;
  }
}

}  // namespace
}  // namespace msdbg::app
