// Tells the thread sanitizer what it cannot see: gRPC runs the reactions of one call one after the other, but orders them
// with locks of a library that is not built with the sanitizer.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace msdbg::live {

/// At the begin of a reaction: everything that an earlier one did has happened before it.
inline void reaction_begins([[maybe_unused]] void* call) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(call);
#endif
}

/// Before an operation is started: from here on the next reaction may run.
inline void operation_starts([[maybe_unused]] void* call) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(call);
#endif
}

}  // namespace msdbg::live
