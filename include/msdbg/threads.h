// Threads: a parallel loop over tasks, workers alongside the owner's thread, and single background threads.
//
// All of them start with every signal blocked: Ctrl-C reaches the owner's thread. An exception does not end the process: it is
// passed to the owner. If the system has no more threads, those that could be started do the work.
#pragma once

#include <csignal>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "msdbg/base.h"

namespace msdbg {

/// Blocks every signal in the calling thread during its lifetime; threads created meanwhile inherit that.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// How many threads to use: `wanted`, or one per processor for 0; never more than `tasks`, at least one.
unsigned thread_count(unsigned wanted, uint64_t tasks);

/// Threads that work while the owner's thread does something else. One owner.
class Workers {
 public:
  Workers() = default;
  ~Workers() = default;  ///< waits for the threads
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Starts up to `count` threads that run `work(worker)`, with worker numbers from 0. Returns how many could be started, and logs
  /// a warning if these are fewer.
  unsigned start(unsigned count, std::function<void(unsigned worker)> work);
  /// Waits until all have ended. Rethrows the first exception of any of them.
  void join();

 private:
  std::function<void(unsigned)> work_;
  std::mutex mutex_;
  std::exception_ptr failure_;  // under mutex_
  std::vector<std::jthread> threads_;
};

/// Runs `work(task, worker)` for every task below `tasks`, on up to `threads` threads (0: one per processor), including the calling
/// one. `worker` is below thread_count(threads, tasks) and belongs to one thread. Tasks start in order. After an interrupt, a
/// Status that is not ok or an exception, no further task starts. Returns that Status, or kInterrupted for an interrupt; rethrows
/// that exception. Calls `between` on the calling thread after each of its tasks.
Status parallel_for(uint64_t tasks, unsigned threads, const std::function<Status(uint64_t task, unsigned worker)>& work,
                    const std::function<void()>& between = nullptr);

/// Starts a thread that runs `run` in the background; an exception ends only that thread and is logged with `name`.
/// Error: kInternal if the system has no more threads.
Status start_thread(std::thread& thread, std::string_view name, std::function<void()> run);

}  // namespace msdbg
