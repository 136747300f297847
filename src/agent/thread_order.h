// Tells the thread sanitizer what it cannot see: memory handed to gRPC is given back in order, but the locks that make
// it so are in a library that is not built with the sanitizer.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace msdbg::agent {

/// What this thread did has happened before what another does after taken_over().
inline void handed_over([[maybe_unused]] void* object) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(object);
#endif
}
inline void taken_over([[maybe_unused]] void* object) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(object);
#endif
}

}  // namespace msdbg::agent
