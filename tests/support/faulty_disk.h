// A disk with faults, placed between our file classes and the operating system during its lifetime. One at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/disk.h"

namespace msdbg::test {

class FaultyDisk : public Disk {
 public:
  FaultyDisk() { Disk::install(this); }
  ~FaultyDisk() override { Disk::install(nullptr); }

  int open_error = 0;                    ///< each open() fails with it
  uint64_t bad_from = UINT64_MAX;        ///< a read() that includes a byte from here on fails with EIO
  uint64_t ends_at = UINT64_MAX;         ///< the file was cut to this length after it was opened
  size_t most_bytes = SIZE_MAX;          ///< the most bytes that one read() or write() transfers
  bool interrupts = false;               ///< every other call is interrupted by a signal
  uint64_t room = UINT64_MAX;            ///< bytes until the disk is full
  int sync_error = 0, rename_error = 0;
  std::atomic<uint64_t> reads = 0;

  int open(const char* path, int flags, mode_t mode) override {
    if (interrupted()) return -1;
    if (open_error != 0) return errno = open_error, -1;
    return Disk::open(path, flags, mode);
  }
  ssize_t read(int file, void* out, size_t size, uint64_t offset) override {
    ++reads;
    if (interrupted()) return -1;
    size = std::min(size, most_bytes);
    if (offset >= ends_at) return 0;
    size = std::min<uint64_t>(size, ends_at - offset);
    if (offset >= bad_from || size > bad_from - offset) return errno = EIO, -1;
    return Disk::read(file, out, size, offset);
  }
  ssize_t write(int file, const void* bytes, size_t size, uint64_t offset) override {
    if (interrupted()) return -1;
    if (room == 0) return errno = ENOSPC, -1;
    size = std::min<uint64_t>({size, most_bytes, room});
    room -= size;
    return Disk::write(file, bytes, size, offset);
  }
  int sync(int file) override { return sync_error != 0 ? (errno = sync_error, -1) : Disk::sync(file); }
  int rename(const char* from, const char* to) override {
    return rename_error != 0 ? (errno = rename_error, -1) : Disk::rename(from, to);
  }

 private:
  bool interrupted() {
    if (!interrupts || calls_++ % 2 == 1) return false;
    errno = EINTR;
    return true;
  }
  std::atomic<uint64_t> calls_ = 0;
};

}  // namespace msdbg::test
