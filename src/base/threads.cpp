#include "msdbg/threads.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <system_error>
#include <utility>

#include "msdbg/team.h"

namespace msdbg {

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

namespace {
std::atomic<unsigned> g_processors{0};
}

void set_processors(unsigned count) { g_processors = count; }

unsigned thread_count(unsigned wanted, uint64_t tasks) {
  const unsigned processors = g_processors > 0 ? g_processors.load() : std::max(1u, std::thread::hardware_concurrency());
  const uint64_t most = wanted > 0 ? wanted : processors;
  return static_cast<unsigned>(std::clamp<uint64_t>(tasks, 1, most));
}

unsigned Workers::start(unsigned count, std::function<void(unsigned)> work) {
  MSDBG_CHECK(threads_.empty());
  work_ = std::move(work);
  const SignalsBlocked blocked;
  try {
    threads_.reserve(count);
    for (unsigned worker = 0; worker < count; ++worker) {
      threads_.emplace_back([this, worker] {
        try {
          work_(worker);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!failure_) failure_ = std::current_exception();
        }
      });
    }
  } catch (const std::system_error& error) {
    log(LogLevel::kWarning, fmt::format("{} of {} threads could be started: {}", threads_.size(), count, error.what()));
  }
  return static_cast<unsigned>(threads_.size());
}

void Workers::join() {
  threads_.clear();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

Status parallel_for(uint64_t tasks, unsigned threads, const std::function<Status(uint64_t, unsigned)>& work,
                    const std::function<void()>& between) {
  std::atomic<uint64_t> next{0};
  std::mutex mutex;
  Status failure;
  const auto stop = [&](Status status) {
    next = tasks;
    const std::lock_guard lock(mutex);
    if (failure.ok()) failure = std::move(status);
  };
  const auto loop = [&](unsigned worker, const std::function<void()>& after) {
    for (uint64_t task; (task = next++) < tasks;) {
      if (interrupt_requested()) return stop(Status(Code::kInterrupted, "interrupted"));
      try {
        if (Status status = work(task, worker); !status.ok()) return stop(std::move(status));
      } catch (...) {
        next = tasks;
        throw;
      }
      if (after) after();
    }
  };
  Workers workers;
  workers.start(thread_count(threads, tasks) - 1, [&](unsigned worker) { loop(worker + 1, nullptr); });
  loop(0, between);
  workers.join();
  return failure;
}

Status start_thread(std::thread& thread, std::string_view name, std::function<void()> run) {
  const SignalsBlocked blocked;
  try {
    thread = std::thread([name = std::string(name), run = std::move(run)] {
      try {
        run();
      } catch (const std::exception& error) {
        log(LogLevel::kError, fmt::format("{}: {}", name, error.what()));
      }
    });
  } catch (const std::system_error& error) {
    return Status(Code::kInternal, fmt::format("{}: no thread could be started: {}", name, error.what()));
  }
  return {};
}

}  // namespace msdbg
