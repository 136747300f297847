// A process that is killed while it writes the index: the file holds either the old rows or the new ones.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>

#include "dump/index_support.h"

namespace msdbg::testing {
namespace {

constexpr int kRounds = 200;
/// So many may miss the moment.
constexpr int kMostRounds = 2000;

/// Until SQLite's journal shows that the index is being written, or its writer has had the time for it.
void wait_for_journal(const IndexedDump& dump) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (!std::filesystem::exists(dump.index() + "-journal") && std::chrono::steady_clock::now() < end) continue;
}

TEST(IndexKill, AtRandomPointsLeavesAnIndexThatIsRight) {
  const IndexedDump dump(12);
  std::mt19937 random(1);
  int rounds = 0, killed = 0, journals = 0;
  for (; rounds < kRounds || (journals == 0 && rounds < kMostRounds); ++rounds) {
    const int round = rounds;
    const int step = round % 12;
    dump.npy(dump.activation(step), {static_cast<double>(round), 1, 2});
    if (round % 20 == 19) std::filesystem::remove(dump.index());  // and while it is made
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto session = open(dump.path(), with_index());
      check_all(*session);  // begins to write in the background
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    // The time between a check's end and that of the write, most of it.
    char byte;
    if (round >= kRounds) {
      wait_for_journal(dump);
    } else if (round % 2 == 0) {
      ASSERT_EQ(::read(ready[0], &byte, 1), 1);
      ::usleep(static_cast<useconds_t>(random() % 1500));
    } else {
      ::usleep(static_cast<useconds_t>(random() % 12000));
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ::close(ready[0]);
    ::close(ready[1]);
    killed += WIFSIGNALED(status) ? 1 : 0;
    journals += std::filesystem::exists(dump.index() + "-journal") ? 1 : 0;
    LogLines log;
    if (round % 3 == 0) {
      ASSERT_EQ(answer(dump.path()), truth(dump.path())) << "round " << round;
    }
    ASSERT_TRUE(log.with("index", LogLevel::kWarning).empty()) << log.with("index", LogLevel::kWarning)[0];
  }
  EXPECT_EQ(killed, rounds);
  EXPECT_GT(journals, 0) << "none was killed while it wrote";
  EXPECT_EQ(answer(dump.path()), truth(dump.path()));
}

}  // namespace
}  // namespace msdbg::testing
