// Work on several threads: every task once, failures and exceptions reach the caller, signals do not reach the workers.
#include "msdbg/sanitizers.h"
#include "msdbg/threads.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <set>

namespace msdbg {
namespace {

TEST(ParallelFor, EveryTaskIsRunOnceWhateverTheThreads) {
  for (const unsigned threads : {0u, 1u, 3u, 16u}) {
    for (const uint64_t tasks : {0u, 1u, 7u, 1000u}) {
      std::vector<std::atomic<int>> runs(tasks);
      std::atomic<unsigned> highest{0};
      EXPECT_TRUE(parallel_for(tasks, threads, [&](uint64_t task, unsigned worker) {
                    ++runs[task];
                    if (worker > highest) highest = worker;
                    return Status();
                  }).ok());
      for (uint64_t task = 0; task < tasks; ++task) EXPECT_EQ(runs[task], 1);
      EXPECT_LT(highest, thread_count(threads, tasks));
    }
  }
}

TEST(ParallelFor, AFailureStopsTheRestAndIsReturned) {
  for (const unsigned threads : {1u, 4u}) {
    std::atomic<uint64_t> begun{0};
    const Status status = parallel_for(1'000'000, threads, [&](uint64_t task, unsigned) {
      ++begun;
      return task == 10 ? Status(Code::kCorrupt, "the tenth is damaged") : Status();
    });
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_EQ(status.message(), "the tenth is damaged");
    EXPECT_LT(begun, 1'000'000u);
  }
}

TEST(ParallelFor, ExceptionsReachTheCallerFromAnyThread) {
  for (const unsigned threads : {1u, 4u}) {
    EXPECT_THROW((void)parallel_for(100, threads,
                                    [](uint64_t task, unsigned) {
                                      MSDBG_CHECK(task < 50);
                                      return Status();
                                    }),
                 InternalError);
  }
}

TEST(ParallelFor, AnInterruptBeginsNoFurtherTask) {
  std::atomic<uint64_t> begun{0};
  const Status status = parallel_for(1'000'000, 2, [&](uint64_t task, unsigned) {
    ++begun;
    if (task == 5) request_interrupt();
    return Status();
  });
  clear_interrupt();
  EXPECT_EQ(status.code(), Code::kInterrupted);
  EXPECT_LT(begun, 1'000'000u);
}

TEST(ParallelFor, TheCallerIsAskedBetweenItsTasks) {
  const auto caller = std::this_thread::get_id();
  uint64_t asked = 0, own = 0;
  EXPECT_TRUE(parallel_for(
                  100, 3,
                  [&](uint64_t, unsigned worker) {
                    if (worker == 0) ++own;
                    return Status();
                  },
                  [&] {
                    EXPECT_EQ(std::this_thread::get_id(), caller);
                    ++asked;
                  })
                  .ok());
  EXPECT_EQ(asked, own);
}

bool blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(Workers, SignalsReachTheOwnerOnly) {
  Workers workers;
  std::atomic<int> masked{0};
  EXPECT_EQ(workers.start(3, [&](unsigned) { masked += blocked(SIGINT) && blocked(SIGTERM); }), 3u);
  workers.join();
  EXPECT_EQ(masked, 3);
  EXPECT_FALSE(blocked(SIGINT));
}

TEST(Workers, ExceptionsAreKeptForTheOwner) {
  Workers workers;
  workers.start(4, [](unsigned worker) {
    if (worker == 2) throw std::runtime_error("worker 2 gave up");
  });
  EXPECT_THROW(workers.join(), std::runtime_error);
  EXPECT_NO_THROW(workers.join());
}

// The sanitizers' runtimes need address space for each thread and abort without it. QEMU ignores the limit.
#if !defined(MSDBG_ASAN) && !defined(MSDBG_TSAN) && !defined(MSDBG_EMULATED)
// In a separate process, because its limit cannot be undone.
[[noreturn]] void work_without_threads() {
  const rlimit none{1 << 20, 1 << 20};  // less than a thread's stack
  ::setrlimit(RLIMIT_AS, &none);
  uint64_t done = 0;
  const Status status = parallel_for(100, 8, [&](uint64_t, unsigned worker) {
    done += worker == 0 ? 1 : 0;
    return Status();
  });
  std::thread thread;
  const Status background = start_thread(thread, "listener", [] {});
  _exit(status.ok() && done == 100 && background.code() == Code::kInternal ? 0 : 1);
}

TEST(Workers, WithoutThreadsTheCallerDoesTheWork) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, which has no earlier stacks to reuse
  EXPECT_EXIT(work_without_threads(), testing::ExitedWithCode(0), "");
}
#endif

TEST(StartThread, RunsInTheBackgroundAndSurvivesAnException) {
  std::thread thread;
  std::atomic<bool> masked{false};
  ASSERT_TRUE(start_thread(thread, "listener", [&] {
                masked = blocked(SIGINT);
                throw std::runtime_error("gone");
              }).ok());
  thread.join();
  EXPECT_TRUE(masked);
}

TEST(ThreadCount, NeverMoreThanTasksAndAtLeastOne) {
  EXPECT_EQ(thread_count(8, 3), 3u);
  EXPECT_EQ(thread_count(8, 0), 1u);
  EXPECT_EQ(thread_count(2, 100), 2u);
  EXPECT_GE(thread_count(0, 100), 1u);
}

}  // namespace
}  // namespace msdbg
