// What does it cost a training to be debugged, and how fast does the debugger see it?
//
// Starts the example training program, holds it in this process, and prints one line a question:
//   RATIO <name> <ours / baseline> target <= t   or   TIME <name> <value> <unit> target ...
//
//   bench_live TRAINER [--small]
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "msdbg/live.h"

namespace {

using namespace msdbg;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Resident memory that is not backed by files, in bytes: what a large tensor adds.
double anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::atof(line.c_str() + 8) * 1024;
  }
  return 0;
}

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "bench_live: %s\n", why.c_str());
  std::exit(3);
}

/// The training program, its output in a pipe.
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

  /// Time of its median step with the agent over that without, from its line
  /// `median step: X ms with the agent, Y ms without`. The two alternate in one process: two processes differ by more
  /// than what is asked for, because of where their memory happens to lie.
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

void cost(const std::string& trainer, const char* name, const char* target, const Watchpoint* watch, int rounds, int steps, int width) {
  std::vector<double> ratios, baseline;
  for (int i = 0; i < rounds; ++i) {
    Held held(trainer, {"--compare", "--steps", std::to_string(steps), "--width", std::to_string(width)});
    if (watch != nullptr) {
      if (Status status = held.session->set_watchpoints({watch, 1}); !status.ok()) die(status.message());
    }
    RunRequest request;
    request.kind = RunKind::kContinue;
    Result<RunResult> result = held.session->run(request);
    if (!result || result->reason != StopReason::kEnded) die("the training stopped somewhere");
    const auto [with, without] = held.training->wait_compared();
    ratios.push_back(with / without);
    baseline.push_back(without);
  }
  std::printf("RATIO %s %.3f target <= %s (one step without the agent: %.1f ms)\n", name, median(ratios), target, median(baseline));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_live TRAINER [--small]\n");
    return 2;
  }
  const std::string trainer = argv[1];
  const bool small = argc > 2 && std::string(argv[2]) == "--small";
  const int width = small ? 64 : 600;  // a step of about 20 ms

  cost(trainer, "training_attached_no_watchpoint", "1.02", nullptr, small ? 3 : 7, small ? 20 : 160, width);
  Watchpoint overflow;
  overflow.id = 1;
  overflow.rule = "tensor_overflow";
  overflow.on = *Selector::parse("**");
  overflow.condition = *parse_condition("TO");
  cost(trainer, "training_with_TO_on_every_tensor", "1.25", &overflow, small ? 3 : 5, small ? 20 : 160, width);

  {
    const int steps = small ? 300 : 5000;
    Held held(trainer, {"--steps", std::to_string(2 * steps + 2), "--width", "1", "--batch", "1"});
    std::vector<double> each;
    for (int i = 0; i < steps; ++i) {
      const auto start = Clock::now();
      if (Result<RunResult> result = held.session->run({}); !result || !result->held) die("a step was not held");
      each.push_back(seconds_since(start));
    }
    std::printf("TIME continue_to_next_suspension %.3f ms target < 1 ms (median of %d steps, the step itself included)\n",
                median(each) * 1e3, steps);
    RunRequest request;
    request.count = steps;
    const auto start = Clock::now();
    if (Result<RunResult> result = held.session->run(request); !result || result->steps_run != steps) die("the steps did not run");
    std::printf("TIME empty_steps %.0f per_second target >= 5000\n", steps / seconds_since(start));
    (void)held.session->terminate(10s);
  }

  {
    const double bytes = (small ? 16.0 : 400.0) * 1e6;
    Held held(trainer, {"--steps", "100000", "--width", "1", "--extra-tensor", small ? "16" : "400"});
    Result<TensorId> id = resolve_tensor(*held.session, "extra.weight:0", held.session->current_step());
    if (!id) die(id.status().message());
    std::vector<double> rates;
    double extra = 0;
    for (int i = 0; i < (small ? 2 : 5); ++i) {
      const double before = anonymous_bytes();
      const auto start = Clock::now();
      Result<OpenTensor> opened = held.session->open_elements(*id);
      if (!opened) die(opened.status().message());
      rates.push_back(bytes / seconds_since(start) / 1e9);
      extra = std::max(extra, anonymous_bytes() - before);
      opened->reader.reset();
      if (Result<RunResult> result = held.session->run({}); !result) die(result.status().message());
      Watchpoint watch = overflow;
      watch.on = *Selector::parse("=extra.weight");
      if (i == 0 && !held.session->set_watchpoints({&watch, 1}).ok()) die("no watchpoint");
      if (Result<RunResult> result = held.session->run({}); !result) die(result.status().message());
      id->step = held.session->current_step();
    }
    std::printf("TIME view_%d_MB %.2f GB/s target >= 1 (extra memory %.2f times the tensor, target <= 1 and a little)\n", small ? 16 : 400,
                median(rates), extra / bytes);
    (void)held.session->terminate(10s);
  }

  {
    ListenOptions options;
    options.mem_limit_bytes = (small ? uint64_t{8} : uint64_t{512}) << 20;
    Held held(trainer, {"--steps", "3", "--width", "1", "--extra-tensor", small ? "16" : "1073"}, options);
    Result<TensorId> id = resolve_tensor(*held.session, "extra.weight:0", held.session->current_step());
    if (!id) die(id.status().message());
    const auto start = Clock::now();
    Result<Stats> stats = held.session->stats(*id);
    if (!stats) die(stats.status().message());
    std::printf("TIME statistics_of_a_tensor_twice_the_memory_limit %.2f s target - (%.0f MB of memory in use, limit %llu MB)\n",
                seconds_since(start), anonymous_bytes() / 1e6, static_cast<unsigned long long>(options.mem_limit_bytes >> 20));
    (void)held.session->terminate(10s);
  }

  {
    Held held(trainer, {"--steps", "3", "--width", "1", "--graph-nodes", small ? "5000" : "100000"});
    std::printf("TIME open_a_graph_of_%zu_nodes %.2f s target < 2 s (from the start of the process to held)\n",
                held.session->graphs()[0]->nodes().size(), seconds_since(held.started));
    (void)held.session->terminate(10s);
  }
  return 0;
}
