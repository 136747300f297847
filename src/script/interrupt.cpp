#include "script/interrupt.h"

#include <luajit.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "script/rule_clock.h"

namespace msdbg::script {
namespace {

constexpr int kInterruptStatus = 130;

// The handler reads both. Set only during the lifetime of an Entry.
std::atomic<Vm*> g_running{nullptr};
std::atomic<pthread_t> g_thread{};
static_assert(std::atomic<Vm*>::is_always_lock_free && std::atomic<pthread_t>::is_always_lock_free);

void on_hook(lua_State* L, lua_Debug*) {
  Vm& vm = vm_of(L);
  if (vm.exit_status)
    push_error(L, "exit", "os.exit", true);
  else if (interrupt_requested())
    push_error(L, code_name(Code::kInterrupted), "interrupted", true);
  else if (const std::string limit = passed_limit(vm); !limit.empty())
    push_error(L, "budget", limit, true);
  else {
    lua_sethook(L, nullptr, 0, 0);
    return;
  }
  lua_error(L);
}

// Async-signal-safe: lua_sethook only stores values and patches the dispatch table; LuaJIT's own program relies on that.
void on_sigint(int signal) {
  Vm* vm = g_running.load();
  if (vm != nullptr && !pthread_equal(pthread_self(), g_thread.load())) {
    pthread_kill(g_thread.load(), signal);
    return;
  }
  if (interrupt_requested()) ::_exit(kInterruptStatus);
  request_interrupt();
  if (vm != nullptr) arm_hook(*vm);
}

void on_profile(void*, lua_State*, int, int) {}

}  // namespace

// The profiler's own ticks are eleven days apart: a tick while a loop over pairs() is recorded makes the LuaJIT of 2022 leave and
// enter the same trace forever. arm_hook() causes the one tick that is needed.
void start_exit_checks(lua_State* L) { luaJIT_profile_start(L, "li1000000000", on_profile, nullptr); }
void stop_exit_checks(lua_State* L) { luaJIT_profile_stop(L); }

void arm_hook(Vm& vm) {
  lua_sethook(vm.L, on_hook, LUA_MASKCOUNT, 1);
  // A compiled loop checks only the profiler's flag. Without the profiler (jit.p may have stopped it) the signal would kill the
  // process.
  struct sigaction profiler = {};
  if (vm.options.interruptible && sigaction(SIGPROF, nullptr, &profiler) == 0 && profiler.sa_handler != SIG_DFL &&
      profiler.sa_handler != SIG_IGN)
    ::raise(SIGPROF);
}

Entry::Entry(Vm& vm) : vm_(vm), outer_(g_running.load()) {
  vm.exit_status.reset();
  g_thread.store(pthread_self());
  g_running.store(&vm);
  struct sigaction action = {};
  action.sa_handler = on_sigint;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before_);
  if (interrupt_requested()) arm_hook(vm);
}

Entry::~Entry() {
  sigaction(SIGINT, &before_, nullptr);
  g_running.store(outer_);
  lua_sethook(vm_.L, nullptr, 0, 0);
}

}  // namespace msdbg::script
