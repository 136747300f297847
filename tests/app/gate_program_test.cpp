// msdbg check as a gate, as a process: Ctrl-C in the middle of a run, a baseline that cannot be written, and identical bytes from
// every run.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "msdbg/tensor.h"
#include "support/fake_session.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace msdbg::app {
namespace {

using test::Process;

const std::vector<std::string> kFormats = {"table", "json", "jsonl", "csv", "markdown", "junit", "sarif"};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
std::string quoted(const std::string& path) { return "'" + path + "'"; }

/// Runs a shell command; $0 is the program.
int shell(const std::string& command, std::string* output = nullptr) {
  Process process({"sh", "-c", command, MSDBG_PROGRAM});
  const int status = process.wait().value_or(-1);
  if (output != nullptr) *output = process.output();
  return status;
}

/// A dump that starts with a NaN and continues with more zeros than any machine reads within a test: the files are sparse.
class LongDump {
 public:
  LongDump() {
    const std::vector<std::byte> bad = npy_bytes(testing::f32({NAN, 1})->view());
    write(dir_.file("abad.npy"), std::string(reinterpret_cast<const char*>(bad.data()), bad.size()));
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(kElements) + ",), }";
    header.resize(117, ' ');
    for (int i = 0; i < 64; ++i) {
      const std::string path = dir_.file("b" + std::to_string(100 + i) + ".npy");
      write(path, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n");
      std::filesystem::resize_file(path, 128 + kElements * 4);
    }
  }
  std::string path() const { return dir_.file(""); }

 private:
  static constexpr uint64_t kElements = uint64_t{1} << 29;  // 2 GiB each
  test::TempDir dir_;
};

/// Waits until the process has a handler for SIGINT and has been reading for a while.
bool is_reading(pid_t pid) {
  for (int i = 0; i < 3000; ++i) {
    std::istringstream stat(read("/proc/" + std::to_string(pid) + "/stat"));
    std::vector<std::string> fields(std::istream_iterator<std::string>(stat), {});
    // 14 and 15 are ticks of processor time; a program that has used 30 is past its start.
    if (fields.size() > 14 && std::stol(fields[13]) + std::stol(fields[14]) >= 30) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// The format and the words that choose rules: conditions alone need no Lua, rule files do.
class CheckInterrupted : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(CheckInterrupted, EndsWithWhatItHasAndSaysSo) {
  LongDump dump;
  const test::TempDir dir;
  const std::string report = dir.file("report"), baseline = dir.file("known.jsonl");
  write(baseline, "old\n");
  const auto& [format, chosen] = GetParam();
  write(dir.file("rule.lua"),
        "return require 'msdbg.rule' { name = 'counts', summary = 'has phases', check = function() end, finish = function() end }\n");
  std::vector<std::string> words = {MSDBG_PROGRAM, "check", dump.path(), "--threads", "1",     "--format",
                                    format,        "-o",    report,      "--bless",   baseline};
  const std::vector<std::string> choice = chosen == "when"
                                              ? std::vector<std::string>{"--when", "TO"}
                                              : std::vector<std::string>{"--rule", dir.file("rule.lua"), "--rules", "TO or counts"};
  words.insert(words.end(), choice.begin(), choice.end());
  Process process(words);
  ASSERT_TRUE(is_reading(process.pid())) << process.output();
  process.send_signal(SIGINT);
  ASSERT_EQ(process.wait(), 130) << process.output();
  const std::string text = read(report);
  const std::map<std::string, std::string> marks = {{"table", "interrupted: "},
                                                    {"json", "\"interrupted\":true"},
                                                    {"jsonl", "\"interrupted\":true"},
                                                    {"csv", "\r\ninterrupted,"},
                                                    {"markdown", "**interrupted: "},
                                                    {"junit", "<error type=\"interrupted\""},
                                                    {"sarif", "\"executionSuccessful\": false"}};
  std::string searched = text;
  if (format == "json") std::erase_if(searched, [](char c) { return c == ' ' || c == '\n'; });
  EXPECT_NE(searched.find(marks.at(format)), std::string::npos) << text;
  EXPECT_NE(text.find("abad"), std::string::npos) << "the finding before Ctrl-C is lost: " << text;
  for (const char* calm : {"clean:", "check: clean", "no new finding"}) EXPECT_EQ(text.find(calm), std::string::npos) << text;
  // Half a run says nothing about known findings.
  EXPECT_EQ(read(baseline), "old\n");
  EXPECT_NE(process.output().find("not written, the run was interrupted"), std::string::npos) << process.output();
}

INSTANTIATE_TEST_SUITE_P(Formats, CheckInterrupted, ::testing::Combine(::testing::ValuesIn(kFormats), ::testing::Values("when", "rules")),
                         [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

class Bless : public ::testing::Test {
 protected:
  // Runs `before` in the shell that runs the check.
  int bless(const std::string& path, const std::string& before, std::string* output) {
    return shell(before + "\"$0\" check " + quoted(MSDBG_TEST_DATA "/dumps/lenet-2.7.1-lognan") +
                     " --on Log-op0 --when TO -o /dev/null --bless " + quoted(path),
                 output);
  }
  test::TempDir dir_;
  std::string output_;
};

TEST_F(Bless, FullDiskLeavesTheOldFileWhole) {
  const std::string path = dir_.file("known.jsonl");
  write(path, "old\n");
  // No file may grow: every write fails like on a full disk.
  EXPECT_EQ(bless(path, "trap '' XFSZ; ulimit -f 0; ", &output_), 3) << output_;
  EXPECT_EQ(read(path), "old\n");
  EXPECT_NE(output_.find("--bless " + path + ": cannot be written: stopped after 0 B: File too large"), std::string::npos) << output_;
  // No other file is left behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_.file("")), std::filesystem::directory_iterator()), 1);
}

TEST_F(Bless, PlacesThatCannotHoldAFileAreNamed) {
  EXPECT_EQ(bless(dir_.file("none/known.jsonl"), "", &output_), 3);
  EXPECT_NE(output_.find("--bless " + dir_.file("none/known.jsonl") + ": cannot be written: no file can be made in " + dir_.file("none") +
                         ": No such file or directory"),
            std::string::npos)
      << output_;
  std::filesystem::create_directory(dir_.file("folder"));
  EXPECT_EQ(bless(dir_.file("folder"), "", &output_), 3);
  EXPECT_NE(output_.find("--bless " + dir_.file("folder") + ": cannot be written: it is a directory"), std::string::npos) << output_;
}

TEST_F(Bless, WrittenFileReplacesTheOldOne) {
  const std::string path = dir_.file("known.jsonl");
  write(path, "old\n");
  EXPECT_EQ(bless(path, "", &output_), 1) << output_;
  EXPECT_EQ(read(path),
            "{\"graph\":\"kernel_graph0\",\"node\":\"Default/network-WithLossCell/_backbone-LeNet5/Log-op0\",\"rule\":\"tensor_overflow\","
            "\"slot\":\"output:0\",\"rank\":0}\n");
}

// ---- what was not checked, and rules that fail completely

class Verdict : public ::testing::Test {
 protected:
  /// Runs msdbg check on a dump with `arguments`; a rule file `rule.lua` contains `rule`.
  int check(const std::string& dump, const std::string& arguments, const std::string& rule = "") {
    write(dir_.file("rule.lua"), rule);
    return shell(
        "cd " + quoted(dir_.file("")) + " && \"$0\" check " + quoted(std::string(MSDBG_TEST_DATA "/dumps/") + dump) + " " + arguments,
        &output_);
  }
  bool says(std::string_view text) const { return output_.find(text) != std::string::npos; }
  test::TempDir dir_;
  std::string output_;
};

TEST_F(Verdict, AStepThatIsNotThereIsToldAndNeverClean) {
  EXPECT_EQ(check("lenet-2.7.1-ok", "--steps 0,9"), 3) << output_;
  EXPECT_TRUE(says("not checked: no step 9 (have 0-2)")) << output_;
  EXPECT_TRUE(says("clean otherwise")) << output_;
  // Findings take precedence, and a range may include steps that do not exist.
  EXPECT_EQ(check("lenet-2.7.1-lognan", "--steps 0,9 --format json"), 1) << output_;
  EXPECT_TRUE(says("no step 9 (have 0-1)")) << output_;
  EXPECT_EQ(check("lenet-2.7.1-ok", "--steps 0:9"), 0) << output_;
}

TEST_F(Verdict, OfTheOnlyRuleWhoseLastPhaseBreaksIsThatNothingRan) {
  const std::string check_part = "return require 'msdbg.rule' { name = 'late', summary = 'breaks at the end', check = function() end,\n";
  for (const char* phase : {"finish = function() return nil + 1 end }", "step_end = function() return nil + 1 end }"}) {
    EXPECT_EQ(check("lenet-2.7.1-ok", "--rule rule.lua", check_part + phase), 5) << output_;
    EXPECT_TRUE(says("not checked: rule late: rule error: rule.lua:2: ")) << output_;
    // Next to another rule, the verdict is that rule's, and incomplete.
    EXPECT_EQ(check("lenet-2.7.1-ok", "--rule rule.lua --rules 'late or TO'", check_part + phase), 0) << output_;
    EXPECT_TRUE(says("clean otherwise")) << output_;
    EXPECT_EQ(check("lenet-2.7.1-ok", "--rule rule.lua --rules 'late or TO' --strict", check_part + phase), 4) << output_;
  }
}

TEST_F(Verdict, OfRulesWithoutNodesIsNamedAndPassesOnlyBesideOthers) {
  const std::string rule =
      "return require 'msdbg.rule' { name = 'mine', summary = 'looks for what is not there', select = 'op:NoSuch', when = 'max(x) > 0' }\n";
  EXPECT_EQ(check("lenet-2.7.1-ok", "--rule rule.lua", rule), 4) << output_;
  EXPECT_TRUE(says("not checked: rule mine: selector matched nothing\nnothing was checked")) << output_;
  EXPECT_EQ(check("lenet-2.7.1-ok", "--rule rule.lua --rules 'mine or TO' --strict", rule), 0) << output_;
  EXPECT_TRUE(says("not checked: rule mine: selector matched nothing\nclean: ")) << output_;
}

TEST_F(Verdict, OfAnExpressionOnNanAloneIsThatNothingCouldBeChecked) {
  const std::string after = "--steps 4 --on fc2.weight --when 'mean(abs(x)) > 0.05'";
  EXPECT_EQ(check("lenet-2.7.1-explode", after), 4) << output_;
  EXPECT_TRUE(says("NaN in the tensor")) << output_;
  EXPECT_TRUE(says("nothing could be checked")) << output_;
  EXPECT_EQ(check("lenet-2.7.1-explode", after + " --nan hit"), 1) << output_;
  EXPECT_EQ(check("lenet-2.7.1-explode", after + " --nan clean"), 0) << output_;
  EXPECT_EQ(check("lenet-2.7.1-explode", "--steps 4 --on fc2.weight --when 'TL abs_mean_gt=0.05' --nan hit"), 1) << output_;
  EXPECT_EQ(check("lenet-2.7.1-explode", "--nan perhaps"), 2) << output_;
}

TEST_F(Verdict, OfADumpOfInputsComesFromTheInputs) {
  const std::string only_inputs = "cp -r --no-preserve=mode " + quoted(MSDBG_TEST_DATA "/dumps/lenet-2.7.1-lognan") +
                                  " dump && find dump -name '*.output.*' -delete && ";
  const auto run = [&](const std::string& arguments) {
    return shell("cd " + quoted(dir_.file("")) + " && rm -rf dump && " + only_inputs + "\"$0\" check dump --strict " + arguments, &output_);
  };
  EXPECT_EQ(run(""), 1);
  EXPECT_TRUE(says("the inputs were checked instead")) << output_;
  EXPECT_TRUE(says("fc2-Dense/MatMul-op0:input:0")) << output_;
  EXPECT_EQ(run("--when TO"), 1) << output_;
  EXPECT_EQ(run("--when TO --slots output"), 4) << output_;
  EXPECT_EQ(run("--on @all --when TO"), 4) << output_;
}

TEST_F(Verdict, OfARuleThatIsMisspeltShowsTheExpressionWithItsCaret) {
  EXPECT_EQ(check("lenet-2.7.1-ok", "--rule rule.lua",
                  "return require 'msdbg.rule' { name = 'typo', summary = 'misspelt',\n  when = 'max(x) >> 0' }\n"),
            5)
      << output_;
  EXPECT_TRUE(says("rule.lua:2: rule 'typo': field 'when': ")) << output_;
  EXPECT_TRUE(says("\n      max(x) >> 0\n")) << output_;
}

TEST_F(Verdict, OfAReportIsAboutWhatIsNew) {
  const std::string dump = quoted(MSDBG_TEST_DATA "/dumps/lenet-2.7.1-lognan"), known = quoted(dir_.file("known")),
                    page = quoted(dir_.file("page.md"));
  write(dir_.file("suppress"), "* **/Log-op0 # masked in the loss\nTZ **/nothing # old\n");
  ASSERT_EQ(shell("\"$0\" check " + dump + " -q -o /dev/null --bless " + known), 1);
  EXPECT_EQ(shell("\"$0\" report " + dump + " -o " + page + " --baseline " + known, &output_), 0) << output_;
  EXPECT_NE(read(dir_.file("page.md")).find("49 known and 0 suppressed findings are left out"), std::string::npos)
      << read(dir_.file("page.md"));
  EXPECT_EQ(shell("\"$0\" report " + dump + " -o " + page + " --suppress " + quoted(dir_.file("suppress")), &output_), 1) << output_;
  EXPECT_TRUE(says("suppress:2: matched nothing: TZ **/nothing")) << output_;
  EXPECT_EQ(read(dir_.file("page.md")).find("--on =Default/network-WithLossCell/_backbone-LeNet5/Log-op0"), std::string::npos);
  EXPECT_EQ(shell("\"$0\" report " + dump + " -o " + page + " --baseline " + quoted(dir_.file("none")), &output_), 3) << output_;
}

TEST_F(Verdict, OfEveryReproductionCommandIsTheFindingAgain) {
  const std::string page = dir_.file("page.md");
  ASSERT_EQ(shell("cd '" MSDBG_TEST_DATA "' && \"$0\" report dumps/lenet-2.7.1-lognan -o " + quoted(page)), 1);
  std::istringstream lines(read(page));
  int checks = 0, shows = 0;
  std::string tensor;  // of "# RULE on TENSOR, step N"
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, std::regex("# .* on (.*), step \\d+"))) tensor = found[1];
    if (!std::regex_match(line, found, std::regex("msdbg ((check|show) .*)"))) continue;
    const bool is_check = found[2] == "check";
    const std::string command = "cd '" MSDBG_TEST_DATA "' && \"$0\" " + found[1].str();
    EXPECT_EQ(shell(command, &output_), is_check ? 1 : 0) << line << '\n' << output_;
    if (is_check && !tensor.empty()) {
      EXPECT_TRUE(says(tensor.substr(0, tensor.find(":output:0")))) << line << '\n' << output_;
    }
    ++(is_check ? checks : shows);
    tensor.clear();
  }
  EXPECT_GT(checks, 10);
  EXPECT_GT(shows, 0);
}

class FullDisk : public ::testing::TestWithParam<std::string> {};

TEST_P(FullDisk, BehindStandardOutputIsAnInputError) {
  const test::TempDir dir;
  write(dir.file("a.lua"), "print 'hello'\n");
  std::string output;
  EXPECT_EQ(shell("cd " + quoted(dir.file("")) + " && \"$0\" " + GetParam() + " > /dev/full", &output), 3) << output;
  EXPECT_NE(output.find("standard output: cannot write"), std::string::npos) << output;
}

INSTANTIATE_TEST_SUITE_P(Commands, FullDisk,
                         ::testing::Values("--version", "--help", "check --help", "run a.lua", "rules list", "rules info TO",
                                           "repl < a.lua", "nodes '" MSDBG_TEST_DATA "/dumps/lenet-2.7.1-ok'"),
                         [](const auto& one) { return "Case" + std::to_string(one.index); });

class SameBytes : public ::testing::TestWithParam<std::string> {};

TEST_P(SameBytes, FromEveryRunAndNumberOfThreads) {
  const test::TempDir dir;
  write(dir.file("suppress"), "TO **/Log-op0 # wanted\nTZ **/nothing # old\n");
  for (const char* name : {"lenet-2.7.1-lognan", "lenet-2.7.1-explode", "two-2.7.1"}) {
    std::string first;
    for (const char* threads : {"1", "2", "7", "7"}) {
      const std::string report = dir.file("report");
      const int status =
          shell("\"$0\" check " + quoted(std::string(MSDBG_TEST_DATA "/dumps/") + name) + " --rules recommended,default --threads " +
                threads + " --suppress " + quoted(dir.file("suppress")) + " --format " + GetParam() + " -o " + quoted(report));
      EXPECT_TRUE(status == 0 || status == 1) << status;
      // Whether a rule's function or a worker reads a tensor first determines which of them uses the cache.
      static const std::regex kReads(R"("bytes": ?\d+,\s*"from_cache": ?\d+)");
      const std::string text = std::regex_replace(read(report), kReads, "");
      ASSERT_FALSE(text.empty());
      if (first.empty()) first = text;
      EXPECT_TRUE(text == first) << name << " with " << threads << " threads differs";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, SameBytes, ::testing::ValuesIn(kFormats), [](const auto& one) { return one.param; });

}  // namespace
}  // namespace msdbg::app
