// The only way to write a directory of files that belong together: the path holds all of them or none.
#pragma once

#include <string>

#include "msdbg/base.h"

namespace msdbg {

/// A directory that is filled under another name next to its final path and renamed when it is complete.
class AtomicDirectory {
 public:
  /// Error: kInvalidArgument if `path` exists and is not an empty directory; kIoError.
  static Result<AtomicDirectory> create(const std::string& path);
  /// Without commit() everything written there is removed.
  ~AtomicDirectory();
  AtomicDirectory(AtomicDirectory&& other) noexcept;
  AtomicDirectory& operator=(AtomicDirectory&&) = delete;

  /// Where to write.
  const std::string& path() const { return temporary_path_; }
  Status commit();

 private:
  AtomicDirectory() = default;
  std::string target_, temporary_path_;
};

}  // namespace msdbg
