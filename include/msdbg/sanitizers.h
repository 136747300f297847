// Information for sanitizers. g++ and clang report active sanitizers in different ways.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define MSDBG_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define MSDBG_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MSDBG_ASAN 1
#elif __has_feature(thread_sanitizer)
#define MSDBG_TSAN 1
#endif
#endif

#if defined(MSDBG_TSAN)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace msdbg {

/// Memory that is left to the end of the process counts as lost: LuaJIT's own is not searched for what refers to it.
#if defined(MSDBG_ASAN)
inline constexpr bool kFindsLeaks = true;
#else
inline constexpr bool kFindsLeaks = false;
#endif

// A happens-before relation that the thread sanitizer cannot see, because the locks are in a library built without it: everything
// before handed_over(object) happens before taken_over(object) returns in another thread.
inline void handed_over([[maybe_unused]] void* object) {
#if defined(MSDBG_TSAN)
  __tsan_release(object);
#endif
}
inline void taken_over([[maybe_unused]] void* object) {
#if defined(MSDBG_TSAN)
  __tsan_acquire(object);
#endif
}

}  // namespace msdbg
