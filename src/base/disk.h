// The system calls of File and AtomicFile, in one class: a test can replace them and inject faults.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "msdbg/base.h"

namespace msdbg {

/// Each function is the system call of the same name: -1 and errno on failure; a short transfer is not a failure. Any thread may
/// call it.
class Disk {
 public:
  virtual ~Disk() = default;
  virtual int open(const char* path, int flags, mode_t mode);
  virtual int stat(int file, struct stat* info);
  virtual ssize_t read(int file, void* out, size_t size, uint64_t offset);
  virtual ssize_t write(int file, const void* bytes, size_t size, uint64_t offset);
  virtual int sync(int file);
  virtual int rename(const char* from, const char* to);

  /// The disk in use: the operating system's unless a test installed another one.
  static Disk& current();
  /// For tests; null restores the operating system's. Not while another thread uses the disk.
  static void install(Disk* disk);
};

/// Creates a file with a unique name in `directory`: "msdbg-PID-NUMBER.part". The umask applies to `mode`. Returns the descriptor,
/// or -1 and errno.
int open_new_file(const std::string& directory, mode_t mode, std::string* path);

/// "Input/output error" for EIO, as in the C library.
std::string system_text(int error);
/// kNotFound if a component of a path is missing, else kIoError.
Code system_code(int error);

}  // namespace msdbg
