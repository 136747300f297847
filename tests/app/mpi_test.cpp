// The program under mpirun on one machine: the output of four processes is that of one, byte for byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "support/copy_dump.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace msdbg::app {
namespace {

using test::Process;

// Open MPI: as root, in a container, with fewer processors than processes, without a network.
const std::vector<std::string> kEnvironment = {"OMPI_ALLOW_RUN_AS_ROOT=1",
                                               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                                               "OMPI_MCA_btl=self,vader",
                                               "OMPI_MCA_btl_vader_single_copy_mechanism=none",
                                               "OMPI_MCA_plm=isolated",
                                               "OMPI_MCA_hwloc_base_binding_policy=none",
                                               "OMPI_MCA_rmaps_base_oversubscribe=1",
                                               // After an exit status other than 0, mpirun would wait before it ends.
                                               "OMPI_MCA_odls_base_sigkill_timeout=0"};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Outcome {
  int status = -1;
  std::string out, err;
};

/// Runs the words in a folder with its own copies of the dumps: no run can use what another one has left there. Standard output and error
/// go to files.
Outcome run(const std::string& words) {
  const test::TempDir dir, copies;
  std::istringstream each(words);
  for (std::string word; each >> word;) {
    if (!word.starts_with("dumps/")) continue;
    std::filesystem::create_directories(copies.file("dumps"));
    test::copy_dump(MSDBG_TEST_DATA "/" + word, copies.file(word));
  }
  const std::string command = "cd '" + copies.file("") + "' && " + words + " > '" + dir.file("out") + "' 2> '" + dir.file("err") + "'";
  Process process({"sh", "-c", command, MSDBG_PROGRAM}, kEnvironment);
  Outcome outcome;
  outcome.status = process.wait().value_or(-1);
  outcome.out = read(dir.file("out"));
  outcome.err = read(dir.file("err"));
  return outcome;
}

Outcome run_alone(const std::string& words) { return run("\"$0\" " + words); }
Outcome run_shared(int processes, const std::string& words) {
  return run(MSDBG_MPIEXEC " -n " + std::to_string(processes) + " \"$0\" " + words);
}

/// A command, and the formats that it is tried in.
struct Words {
  const char* name;
  const char* text;
  const char* formats;
};
std::ostream& operator<<(std::ostream& out, const Words& words) { return out << words.text; }

class UnderMpirun : public ::testing::TestWithParam<Words> {};

TEST_P(UnderMpirun, PrintsWhatOneProcessPrints) {
  std::istringstream formats(GetParam().formats);
  for (std::string format; formats >> format;) {
    const std::string words = std::string(GetParam().text) + " --format " + format;
    const Outcome alone = run_alone(words), shared = run_shared(4, words + " -v");
    EXPECT_EQ(shared.out, alone.out) << words;
    EXPECT_EQ(shared.status, alone.status) << shared.err;
    EXPECT_FALSE(alone.out.empty()) << alone.err;
    // "measure: other processes did 180 of 240 items": really.
    const size_t at = shared.err.find("other processes did ");
    ASSERT_NE(at, std::string::npos) << shared.err;
    EXPECT_GT(std::stoi(shared.err.substr(at + 20)), 0) << shared.err;
    EXPECT_EQ(shared.err.find("process 0 tries"), std::string::npos) << shared.err;
  }
}

constexpr const char* kAll = "table json jsonl csv markdown";
INSTANTIATE_TEST_SUITE_P(
    Commands, UnderMpirun,
    ::testing::Values(Words{"check", "check dumps/lenet-2.7.1-lognan", "table json jsonl csv markdown junit sarif"},
                      Words{"check_ranks", "check dumps/ranks-2.7.1-badbatch", "table json"},
                      Words{"check_conditions", "check dumps/lenet-2.7.1-explode --when 'percent(abs(x - prev) > 1) > 5' --when 'WCL'",
                            "json"},
                      Words{"stats", "stats dumps/lenet-2.7.1-explode --slots all", kAll},
                      Words{"origin", "origin dumps/lenet-2.7.1-explode", "table json jsonl"},
                      Words{"diff", "diff dumps/lenet-2.7.1-lognan dumps/lenet-2.7.1-ok", "table json jsonl csv markdown junit sarif"},
                      Words{"replicas", "replicas dumps/ranks-2.7.1-flip", kAll}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Mpirun, WhatTheIndexKnowsIsCountedAsByOneProcess) {
  const std::string fill = "\"$0\" origin dumps/lenet-2.7.1-explode > filled; ", again = "\"$0\" origin 'dumps/lenet-2.7.1-explode' --format json";
  const Outcome alone = run(fill + again), shared = run(fill + MSDBG_MPIEXEC " -n 3 " + again);
  EXPECT_NE(alone.out.find("from_cache"), std::string::npos);
  EXPECT_EQ(shared.out, alone.out);
}

TEST(Mpirun, DamagedFilesAreReportedAsByOneProcess) {
  const test::TempDir dir;
  test::copy_dump(MSDBG_TEST_DATA "/dumps/lenet-2.7.1-ok", dir.file("dump"));
  int number = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.file("dump"))) {
    if (entry.path().extension() != ".npy" || ++number % 9 != 0) continue;
    std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_all);
    std::filesystem::resize_file(entry.path(), 70 + number % 3);
  }
  const std::string words = "check '" + dir.file("dump") + "' --format json --when TO --when WNC";
  const Outcome alone = run_alone(words), shared = run_shared(3, words);
  EXPECT_NE(alone.out.find("not_checked"), std::string::npos);
  EXPECT_EQ(shared.out, alone.out);
  EXPECT_EQ(shared.status, alone.status);
}

/// A file of zeros that takes no space on the disk.
void write_sparse_npy(const std::string& path, uint64_t elements) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(elements) + ",), }";
  header.resize(117, ' ');
  std::ofstream(path, std::ios::binary) << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << '\n';
  std::filesystem::resize_file(path, 128 + elements * 4);
}

TEST(Mpirun, AReaderThatIsKilledIsNamedAndTheRestIsServed) {
  const test::TempDir dir;
  for (int i = 0; i < 400; ++i) write_sparse_npy(dir.file("t" + std::to_string(i) + ".npy"), 16 << 20);
  // Process 2 is a relay, and its child reads.
  const Outcome lost = run("{ " MSDBG_MPIEXEC " -n 3 \"$0\" check --no-index '" + dir.file("") + R"(' & job=$!; reader=
    until [ -n "$reader" ]; do
      sleep 0.05
      for process in $(cat /proc/$job/task/$job/children); do
        if grep -qz '^OMPI_COMM_WORLD_RANK=2$' /proc/$process/environ; then reader=$(cat /proc/$process/task/$process/children); fi
      done
      kill -0 $job || exit 9
    done
    kill -KILL $reader; wait $job; })");
  EXPECT_EQ(lost.status, 4) << lost.err;
  EXPECT_NE(lost.err.find("msdbg: process 2"), std::string::npos) << lost.err;
  EXPECT_NE(lost.err.find(" was lost: ended by signal 9; the result has what was gathered until then"), std::string::npos) << lost.err;
  EXPECT_NE(lost.out.find("interrupted: "), std::string::npos) << lost.out;
}

TEST(Mpirun, OnlyProcess0PrintsErrorsAndHelp) {
  for (const char* words : {"--version", "check --help", "check no-such-dump", "check --no-such-option"}) {
    const Outcome alone = run_alone(words), shared = run_shared(3, words);
    EXPECT_EQ(shared.out, alone.out) << words;
    EXPECT_EQ(shared.status, alone.status) << words;
    const size_t first = alone.err.empty() ? 0 : shared.err.find(alone.err);
    ASSERT_NE(first, std::string::npos) << shared.err;
    EXPECT_TRUE(alone.err.empty() || shared.err.find(alone.err, first + 1) == std::string::npos) << shared.err;
  }
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(Mpirun, AVariableMakesEachProcessRunAlone) {
  const Outcome alone = run_alone("--version"), each = run("MSDBG_MPI=0 " MSDBG_MPIEXEC " -n 3 \"$0\" --version");
  EXPECT_EQ(each.status, 0);
  EXPECT_EQ(sorted_lines(each.out), sorted_lines(alone.out + alone.out + alone.out));  // their lines may be mixed
}

}  // namespace
}  // namespace msdbg::app
