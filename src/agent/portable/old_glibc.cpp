// What the C library has had since 2.17, for a library that is to work with that release: part of the wheel's library alone, and not
// exported. The linker takes these functions because its C library is a stub that does not have them (packaging/old_glibc.py).
#include "agent/portable/old_glibc.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>

namespace msdbg::agent::old_glibc {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

using ClockWait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

// Nanoseconds until the deadline: at least none, at most `most`.
std::int64_t until(clockid_t clock, const timespec& deadline, std::int64_t most) {
  timespec now{};
  clock_gettime(clock, &now);
  const std::int64_t seconds = static_cast<std::int64_t>(deadline.tv_sec) - now.tv_sec;
  if (seconds < -1) return 0;
  if (seconds > most / kSecond + 1) return most;
  return std::clamp<std::int64_t>(seconds * kSecond + (deadline.tv_nsec - now.tv_nsec), 0, most);
}

bool read_bytes(const char* path, char* at, std::size_t size) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  while (size > 0) {
    const ssize_t got = read(file, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  close(file);
  return size == 0;
}

}  // namespace

int wait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec& deadline, std::int64_t slice) {
  const std::int64_t left = until(clock, deadline, slice);
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  const std::int64_t nanoseconds = wall.tv_nsec + left;
  wall.tv_sec += static_cast<time_t>(nanoseconds / kSecond);
  wall.tv_nsec = static_cast<long>(nanoseconds % kSecond);
  const int result = pthread_cond_timedwait(condition, mutex, &wall);
  return result == ETIMEDOUT && until(clock, deadline, 1) > 0 ? 0 : result;
}

bool random_bytes(void* bytes, std::size_t size, bool by_call) {
  char* at = static_cast<char*>(bytes);
  while (by_call && size > 0) {
    const long got = syscall(SYS_getrandom, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return size == 0 || read_bytes("/dev/urandom", at, size);
}

}  // namespace msdbg::agent::old_glibc

namespace old_glibc = msdbg::agent::old_glibc;

extern "C" {

// 2.32. Without it, whoever counts references does so as if there were other threads, and there are.
char __libc_single_threaded = 0;

// 2.33. Before, they were inline functions. On 64-bit processors, the kernel fills the structure that the C library shows.
int fstatat(int folder, const char* path, struct stat* found, int flags) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, found, flags));
}
int fstat(int file, struct stat* found) noexcept { return static_cast<int>(syscall(SYS_fstat, file, found)); }
int stat(const char* path, struct stat* found) noexcept { return fstatat(AT_FDCWD, path, found, 0); }
int lstat(const char* path, struct stat* found) noexcept { return fstatat(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW); }
int fstat64(int file, struct stat64* found) noexcept { return static_cast<int>(syscall(SYS_fstat, file, found)); }
int stat64(const char* path, struct stat64* found) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, found, 0));
}
int lstat64(const char* path, struct stat64* found) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW));
}

// 2.28. The same function on 64-bit processors.
int fcntl64(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return fcntl(file, command, argument);
}

// 2.30. That of the C library is used where there is one. Its name has a version because this one has the same name.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline) {
  static const auto real = reinterpret_cast<old_glibc::ClockWait>(dlvsym(RTLD_DEFAULT, "pthread_cond_clockwait", "GLIBC_2.30"));
  return real ? real(condition, mutex, clock, deadline) : old_glibc::wait(condition, mutex, clock, *deadline);
}

// 2.25.
int getentropy(void* bytes, size_t size) {
  if (size <= 256 && old_glibc::random_bytes(bytes, size)) return 0;
  errno = EIO;
  return -1;
}

// 2.36. It cannot fail; without random numbers, the time serves. The C++ library calls it, not for secrets.
std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  if (old_glibc::random_bytes(&number, sizeof number)) return number;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint32_t>(now.tv_nsec) * 2654435761U;
}

}  // extern "C"
