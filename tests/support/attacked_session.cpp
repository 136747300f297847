// Holds, steps and reads the example training until a file appears, and reports whether every answer was correct.
//
//   attacked_session MEM_LIMIT_MB FILE      prints "port N", "begin", and at the end "steps N" or what was wrong
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "msdbg/live.h"

namespace {

using namespace msdbg;
using namespace std::chrono_literals;

[[noreturn]] void die(const std::string& why) {
  fmt::print("wrong: {}\n", why);
  std::exit(1);
}

void read_value(LiveSession& session) {
  Result<TensorId> id = resolve_tensor(session, "Default/extra-Identity/Identity-op43:output:0", session.current_step());
  if (!id) die(id.status().message());
  Result<TensorPtr> tensor = session.load(*id);
  if (!tensor) die(tensor.status().message());
  const TensorView view = (*tensor)->view();
  if (view.dtype != DType::kFloat32 || view.count < 1000 || view.at(999) != 999) die("the value that was read");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  ListenOptions options;
  options.port = 0;
  options.mem_limit_bytes = std::strtoull(argv[1], nullptr, 10) << 20;
  Result<std::unique_ptr<LiveSession>> made = listen(options);
  if (!made) die(made.status().message());
  LiveSession& session = **made;
  fmt::print("port {}\n", session.address().substr(session.address().rfind(':') + 1));
  if (Status status = session.wait_until_held(60s); !status.ok()) die(status.message());
  Watchpoint watch;
  watch.id = 1;
  watch.rule = "tensor_overflow";
  watch.on = *Selector::parse("**/Identity*");
  watch.condition = *parse_condition("TO");
  if (Status status = session.set_watchpoints({&watch, 1}); !status.ok()) die(status.message());
  fmt::print("begin\n");
  int steps = 0;
  do {
    Result<RunResult> result = session.run({});
    if (!result) die(result.status().message());
    if (result->reason != StopReason::kDone || !result->held) die(fmt::format("a step ended with {}", stop_reason_name(result->reason)));
    read_value(session);
    (void)session.take_events();
    ++steps;
  } while (steps < 3 || !std::filesystem::exists(argv[2]));
  fmt::print("steps {}\n", steps);
  if (Result<RunResult> ended = session.terminate(30s); !ended || ended->state != LiveState::kEnded) die("the end");
  return 0;
}
