// Process-wide state: the interrupt flag, the log sink, the heap.
#include <atomic>
#include <mutex>

#include "msdbg/base.h"
#include "msdbg/memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace msdbg {
namespace {

// Lock-free, because the SIGINT handler writes it.
std::atomic<bool> g_interrupt{false};
static_assert(std::atomic<bool>::is_always_lock_free);

std::mutex g_log_mutex;

LogSink& log_sink() {
  static LogSink sink;
  return sink;
}

}  // namespace

void request_interrupt() noexcept { g_interrupt.store(true, std::memory_order_relaxed); }
bool interrupt_requested() noexcept { return g_interrupt.load(std::memory_order_relaxed); }
void clear_interrupt() noexcept { g_interrupt.store(false, std::memory_order_relaxed); }

void set_log_sink(LogSink sink) {
  std::lock_guard lock(g_log_mutex);
  log_sink() = std::move(sink);
}

void log(LogLevel level, std::string_view text) {
  std::lock_guard lock(g_log_mutex);
  if (log_sink()) log_sink()(level, text);
}

void return_free_memory() noexcept {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace msdbg
