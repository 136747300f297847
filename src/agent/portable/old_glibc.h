// What stands behind functions that an old C library lacks (old_glibc.cpp).
#pragma once
#include <pthread.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

namespace msdbg::agent::old_glibc {

// The longest wait until the other clock is asked again: the wall clock may be set in the meantime.
inline constexpr std::int64_t kSlice = 1'000'000'000;

// pthread_cond_clockwait for a C library that can wait by the wall clock alone. After a slice it returns 0 as if somebody had woken it,
// which a wait may do at any time.
int wait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec& deadline, std::int64_t slice = kSlice);

// Fills `size` bytes with the kernel's random numbers: by the system call, or from /dev/urandom where the kernel has no such call.
// False if neither works.
bool random_bytes(void* bytes, std::size_t size, bool by_call = true);

}  // namespace msdbg::agent::old_glibc
