#include "script/rule_clock.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "script/interrupt.h"

namespace msdbg::script {

using Limit = RuleCall::Limit;

namespace {

constexpr double kMostRuleSeconds = 1e9;
constexpr long kTickNs = 20'000'000;
constexpr int64_t kPatienceNs = 5'000'000'000;  ///< time past the limit before a message is printed

// Read by the signal handler on the thread that set them.
std::atomic<Vm*> g_vm{nullptr};
std::atomic<int64_t> g_deadline_ns{0};
std::atomic<Limit> g_passed{Limit::kNone};
std::atomic<double> g_seconds{0};
std::atomic<double> g_memory_mb{kRuleMemoryMb};
std::atomic<const char*> g_rule{""};
std::atomic<bool> g_reported{false};
static_assert(std::atomic<int64_t>::is_always_lock_free && std::atomic<double>::is_always_lock_free);

int tick_signal() { return SIGRTMIN + 5; }

int64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void write_stderr(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;  // cannot be reported anywhere else
}

void report_stuck_rule() {
  if (g_reported.exchange(true)) return;
  write_stderr("msdbg: rule ");
  write_stderr(g_rule.load());
  write_stderr(" is past its limit, in a library call that cannot be stopped; Ctrl-C twice ends the program\n");
}

// Async-signal-safe: reading the collector's count is a plain load, and the hook is armed as for Ctrl-C.
void on_tick(int) {
  Vm* vm = g_vm.load();
  if (vm == nullptr) return;
  if (g_passed.load() == Limit::kNone) {
    if (lua_gc(vm->L, LUA_GCCOUNT, 0) > g_memory_mb.load() * 1024) g_passed = Limit::kMemory;
    else if (now_ns() > g_deadline_ns.load()) g_passed = Limit::kTime;
    else return;
  } else if (now_ns() > g_deadline_ns.load() + kPatienceNs && *g_rule.load() != '\0') {
    report_stuck_rule();
  }
  arm_hook(*vm);
}

/// Starts ticking with the first rule; an idle tick has no measurable cost.
class Timer {
 public:
  Timer() {
    struct sigaction action = {};
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(tick_signal(), &action, nullptr);
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = tick_signal();
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    made_ = timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (!made_) return;
    const itimerspec every = {{0, kTickNs}, {0, kTickNs}};
    timer_settime(timer_, 0, &every, nullptr);
  }
  ~Timer() {
    if (made_) timer_delete(timer_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  timer_t timer_ = {};
  bool made_ = false;
};

}  // namespace

std::string passed_limit(const Vm& vm) {
  if (g_vm.load() != &vm) return "";
  switch (g_passed.load()) {
    case Limit::kNone: return "";
    case Limit::kTime: return fmt::format("stopped after {:g} s (--rule-budget)", g_seconds.load());
    case Limit::kMemory: return fmt::format("stopped: more than {:g} MB are in use", g_memory_mb.load());
  }
  return "";
}

double set_rule_memory(double mb) { return g_memory_mb.exchange(mb); }

RuleCall::RuleCall(Vm& vm, double seconds, const char* rule) : vm_(vm) {
  thread_local Timer timer;  // per thread: its signals go to the thread that created it
  outer_ = {g_vm.load(), g_deadline_ns.load(), g_passed.load(), g_seconds.load(), g_rule.load(), g_reported.load()};
  Running inner = {
      &vm, now_ns() + static_cast<int64_t>((seconds >= 0 ? std::min(seconds, kMostRuleSeconds) : 0) * 1e9), Limit::kNone, seconds, rule, false};
  // A nested call ends no later than the outer one.
  if (outer_.vm == &vm && outer_.deadline_ns < inner.deadline_ns) {
    inner.deadline_ns = outer_.deadline_ns;
    inner.seconds = outer_.seconds;
  }
  run(inner);
}

RuleCall::~RuleCall() {
  const bool passed = g_passed.load() != Limit::kNone;
  run(outer_);
  if (passed && !vm_.exit_status && !interrupt_requested()) lua_sethook(vm_.L, nullptr, 0, 0);
  if (passed) lua_gc(vm_.L, LUA_GCCOLLECT, 0);
  if (outer_.vm == &vm_ && outer_.passed != Limit::kNone) arm_hook(vm_);
}

void RuleCall::run(const Running& running) {
  // Ticks come on this thread, and there is a call for each tensor: the order is kept for the compiler alone.
  constexpr auto kHere = std::memory_order_relaxed;
  g_vm.store(nullptr, kHere);  // no tick sees a mixture of both
  std::atomic_signal_fence(std::memory_order_seq_cst);
  g_deadline_ns.store(running.deadline_ns, kHere);
  g_passed.store(running.passed, kHere);
  g_seconds.store(running.seconds, kHere);
  g_rule.store(running.rule, kHere);
  g_reported.store(running.reported, kHere);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  g_vm.store(running.vm, kHere);
}

bool RuleCall::call(lua_State* L, int nargs, int nresults) {
  // A result in time counts, even if the last instructions passed the limit.
  if (protected_call(L, nargs, nresults)) return true;
  if (vm_.exit_status || interrupt_requested()) {
    cancelled_ = true;
    return false;
  }
  const std::string limit = passed_limit(vm_);
  const ErrorView error = read_error(L, -1);
  exceeded_limit_ = !limit.empty() || error.code == "out_of_memory";
  lua_sethook(vm_.L, nullptr, 0, 0);
  problem_ = limit.empty() ? error_text(error, false) : error.where.empty() ? limit : fmt::format("{}: {}", error.where, limit);
  lua_pop(L, 1);
  if (exceeded_limit_) lua_gc(L, LUA_GCCOLLECT, 0);
  return false;
}

}  // namespace msdbg::script
