#include "base/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace msdbg {
namespace {

std::atomic<Disk*> g_installed{nullptr};

}  // namespace

int Disk::open(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
int Disk::stat(int file, struct stat* info) { return ::fstat(file, info); }
ssize_t Disk::read(int file, void* out, size_t size, uint64_t offset) { return ::pread(file, out, size, static_cast<off_t>(offset)); }
ssize_t Disk::write(int file, const void* bytes, size_t size, uint64_t offset) {
  return ::pwrite(file, bytes, size, static_cast<off_t>(offset));
}
int Disk::sync(int file) { return ::fsync(file); }
int Disk::rename(const char* from, const char* to) { return std::rename(from, to); }

Disk& Disk::current() {
  static Disk system;
  Disk* installed = g_installed.load(std::memory_order_acquire);
  return installed != nullptr ? *installed : system;
}

void Disk::install(Disk* disk) { g_installed.store(disk, std::memory_order_release); }

int open_new_file(const std::string& directory, mode_t mode, std::string* path) {
  constexpr int kAttempts = 100;  // names left over from an earlier process with the same id
  static std::atomic<uint64_t> number{0};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    *path = fmt::format("{}/msdbg-{}-{}.part", directory, ::getpid(), number.fetch_add(1, std::memory_order_relaxed));
    const int file = Disk::current().open(path->c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || (errno != EEXIST && errno != EINTR)) return file;
  }
  return -1;
}

std::string system_text(int error) { return std::generic_category().message(error); }
Code system_code(int error) { return error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kIoError; }

}  // namespace msdbg
