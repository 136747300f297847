// How much does debugging cost a training, and how fast does the debugger receive its values?
//
// Starts the example training program, holds it in this process, and prints one line per question:
//   RATIO <name> <ours / baseline> target <= t   or   TIME <name> <value> <unit> target ...
//
//   bench_live TRAINER [--small] [--transfer | --values]      --transfer: only the rate of one large value, --values: many small
//   ones
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <fstream>

#include "held_training.h"
#include "many_values.h"

namespace {

using namespace msdbg;
using namespace msdbg::bench;

/// Resident memory that is not backed by files, in bytes: what a large tensor adds.
double anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssAnon:", 0) == 0) return std::atof(line.c_str() + 8) * 1024;
  }
  return 0;
}

/// Bytes per second of a plain socket between two local processes, read into newly allocated memory.
double plain_socket_rate(size_t bytes) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&at), length) != 0 || ::listen(listener, 1) != 0) die("no socket");
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length);
  const pid_t child = ::fork();
  if (child == 0) {
    const int out = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(out, reinterpret_cast<sockaddr*>(&at), length) != 0) ::_exit(1);
    const std::vector<char> elements(bytes, 'x');
    char go = 0;
    if (::read(out, &go, 1) != 1) ::_exit(1);
    for (size_t done = 0; done < bytes;) {
      const ssize_t n = ::write(out, elements.data() + done, std::min<size_t>(bytes - done, 3 << 20));
      if (n <= 0) ::_exit(1);
      done += static_cast<size_t>(n);
    }
    ::_exit(0);
  }
  const int in = ::accept(listener, nullptr, nullptr);
  ::usleep(300000);  // it fills its memory
  const auto start = Clock::now();
  const std::unique_ptr<char[]> place(new char[bytes]);
  if (::write(in, "x", 1) != 1) die("no socket");
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = ::read(in, place.get() + done, bytes - done);
    if (n <= 0) die("the socket broke");
    done += static_cast<size_t>(n);
  }
  const double rate = static_cast<double>(bytes) / seconds_since(start);
  ::waitpid(child, nullptr, 0);
  ::close(in);
  ::close(listener);
  return rate;
}

void transfer(const std::string& trainer, bool small) {
  const double bytes = (small ? 16.0 : 400.0) * 1e6;
  Held held(trainer, {"--steps", "100000", "--width", "1", "--extra-tensor", small ? "16" : "400"});
  Result<TensorId> id = resolve_tensor(*held.session, "extra.weight:0", held.session->current_step());
  if (!id) die(id.status().message());
  Watchpoint watch;
  watch.id = 1;
  watch.rule = "tensor_overflow";
  watch.on = *Selector::parse("=extra.weight");
  watch.condition = *parse_condition("TO");
  std::vector<double> rates, ratios;
  double extra = 0;
  for (int i = 0; i < (small ? 2 : 5); ++i) {
    const double plain = plain_socket_rate(static_cast<size_t>(bytes));
    const double before = anonymous_bytes();
    const auto start = Clock::now();
    Result<OpenTensor> opened = held.session->open_elements(*id);
    if (!opened) die(opened.status().message());
    rates.push_back(bytes / seconds_since(start));
    ratios.push_back(plain / rates.back());
    extra = std::max(extra, anonymous_bytes() - before);
    opened->reader.reset();
    if (Result<RunResult> result = held.session->run({}); !result) die(result.status().message());
    if (i == 0 && !held.session->set_watchpoints({&watch, 1}).ok()) die("no watchpoint");
    if (Result<RunResult> result = held.session->run({}); !result) die(result.status().message());
    id->step = held.session->current_step();
  }
  std::printf("TIME view_%d_MB %.2f GB/s target >= 1 (extra memory %.2f times the tensor, target <= 1 and a little)\n", small ? 16 : 400,
              median(rates) / 1e9, extra / bytes);
  std::printf("RATIO plain_socket_over_view %.2f target <= 2 (the socket is read into new memory as well)\n", median(ratios));
  (void)held.session->terminate(10s);
}

void cost(const std::string& trainer, const char* name, const char* target, const Watchpoint* watch, int rounds, int steps, int width,
          size_t history = 0) {
  std::vector<double> ratios, baseline;
  ListenOptions options;
  options.history_tensors = history;
  for (int i = 0; i < rounds; ++i) {
    Held held(trainer, {"--compare", "--steps", std::to_string(steps), "--width", std::to_string(width)}, options);
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
    std::fprintf(stderr, "usage: bench_live TRAINER [--small] [--transfer | --values]\n");
    return 2;
  }
  const std::string trainer = argv[1];
  const auto given = [&](const std::string& word) { return std::find(argv + 2, argv + argc, word) != argv + argc; };
  const bool small = given("--small");
  if (given("--transfer")) {
    transfer(trainer, small);
    return 0;
  }
  if (given("--values")) {
    bench::many_values(trainer, small);
    return 0;
  }
  const int width = small ? 64 : 600;  // a step of about 20 ms

  cost(trainer, "training_attached_no_watchpoint", "1.02", nullptr, small ? 3 : 7, small ? 20 : 160, width);
  Watchpoint overflow;
  overflow.id = 1;
  overflow.rule = "tensor_overflow";
  overflow.on = *Selector::parse("**");
  overflow.condition = *parse_condition("TO");
  cost(trainer, "training_with_TO_on_every_tensor", "1.25", &overflow, small ? 3 : 5, small ? 20 : 160, width);
  cost(trainer, "training_with_history", "1.10", nullptr, small ? 3 : 5, small ? 20 : 160, width, kHistoryTensors);

  const int steps = small ? 300 : 5000;
  {
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
    ListenOptions options;
    options.history_tensors = kHistoryTensors;
    Held held(trainer, {"--steps", std::to_string(steps + 2), "--width", "1", "--batch", "1"}, options);
    RunRequest request;
    request.count = steps;
    const auto start = Clock::now();
    if (Result<RunResult> result = held.session->run(request); !result || result->steps_run != steps) die("the steps did not run");
    std::printf("TIME empty_steps_with_history %.0f per_second target -\n", steps / seconds_since(start));
    (void)held.session->terminate(10s);
  }

  transfer(trainer, small);
  bench::many_values(trainer, small);

  {
    ListenOptions options;
    options.mem_limit_bytes = (small ? uint64_t{8} : uint64_t{512}) << 20;
    Held held(trainer, {"--steps", "3", "--width", "1", "--extra-tensor", small ? "16" : "1073"}, options);
    Result<TensorId> id = resolve_tensor(*held.session, "extra.weight:0", held.session->current_step());
    if (!id) die(id.status().message());
    const double before = anonymous_bytes();
    const auto start = Clock::now();
    Result<Stats> stats = held.session->stats(*id);
    if (!stats) die(stats.status().message());
    std::printf("TIME statistics_of_a_tensor_twice_the_memory_limit %.2f s target - (%.0f MB more memory in use, limit %llu MB)\n",
                seconds_since(start), (anonymous_bytes() - before) / 1e6,
                static_cast<unsigned long long>(options.mem_limit_bytes >> 20));
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
