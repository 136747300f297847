// A training program held by this process, for benchmarks of live sessions.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "msdbg/live.h"

namespace msdbg::bench {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

inline double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

[[noreturn]] inline void die(const std::string& why) {
  std::fprintf(stderr, "bench_live: %s\n", why.c_str());
  std::exit(3);
}

/// The training program, with its output in a pipe.
class Training {
 public:
  Training(const std::string& program, std::vector<std::string> words) {
    int ends[2];
    if (::pipe(ends) != 0) die("no pipe");
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::setenv("ENABLE_MS_DEBUGGER", "1", 1);
      std::vector<char*> argv{const_cast<char*>(program.c_str())};
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(program.c_str(), argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  ~Training() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    std::fclose(output_);
  }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// The median time of a step with the agent and without, from the line `median step: X ms with the agent, Y ms without`. The two
  /// alternate in one process: two processes differ by more than the effect, because of the placement of their memory.
  std::pair<double, double> wait_compared() {
    char line[512];
    double with = -1, without = -1;
    while (std::fgets(line, sizeof line, output_) != nullptr) {
      std::sscanf(line, "median step: %lf ms with the agent, %lf ms without", &with, &without);
    }
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
    if (with < 0 || without <= 0) die("the training did not end as it should");
    return {with, without};
  }

 private:
  pid_t child_;
  FILE* output_;
};

struct Held {
  Held(const std::string& trainer, std::vector<std::string> words, ListenOptions options = {}) {
    options.port = 0;
    auto made = msdbg::listen(options);
    if (!made) die(made.status().message());
    session = std::move(*made);
    const std::string address = session->address();
    words.insert(words.end(), {"--host", "127.0.0.1", "--port", address.substr(address.rfind(':') + 1)});
    started = Clock::now();
    training = std::make_unique<Training>(trainer, words);
    if (Status status = session->wait_until_held(60s); !status.ok()) die(status.message());
  }
  std::unique_ptr<LiveSession> session;
  std::unique_ptr<Training> training;
  Clock::time_point started;
};

}  // namespace msdbg::bench
