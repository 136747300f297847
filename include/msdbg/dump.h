// Sessions over dump directories.
#pragma once

#include <chrono>
#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msdbg/session.h"

namespace msdbg {

struct DumpOptions {
  std::optional<std::string> net;   ///< if the dump holds several; default: all
  IntSet ranks = IntSet::all();
  /// Keeps listings and statistics from one run to the next (docs/index.md).
  bool index = false;
  /// The statistics of the dump are asked for once it is open: its files are looked at while it opens. What has changed within the second
  /// before it is asked for may go unnoticed.
  bool asks_at_once = false;
  /// The index forgets files that changed less than this before they were read: another change might not show.
  std::chrono::milliseconds settled{2000};
};

/// Opens a dump directory: reads graphs and lists each directory once, on demand; reads no tensor.
/// Error: kNotFound "no dump here" with the nearest candidates below the path; kIoError.
Result<std::unique_ptr<Session>> open_dump(const std::string& path, const DumpOptions& options = {});

struct ConvertOptions {
  std::string output;    ///< a directory; made if it does not exist
  unsigned threads = 0;  ///< 0: one per processor
  bool list = false;     ///< ConvertResult::files is wanted
  /// Called on the calling thread with files done, all files, and bytes read.
  std::function<void(uint64_t done, uint64_t total, uint64_t bytes)> progress = {};
};

struct ConvertResult {
  uint64_t converted = 0;  ///< tensors that were written as .npy
  uint64_t copied = 0;     ///< other files of the dump
  uint64_t present = 0;    ///< files that an earlier run had written
  uint64_t bytes = 0;      ///< written

  /// A tensor that stays in its container, which is copied.
  struct Left {
    std::string tensor;    ///< path of the container, io and slot
    std::string reason;
    bool damaged = false;  ///< not only a type or format that cannot be converted
    auto operator<=>(const Left&) const = default;
  };
  std::vector<Left> left;

  enum class Done { kConverted, kCopied, kPresent };
  /// A file of the new dump.
  struct File {
    std::string path, from;    ///< with their directories
    std::optional<Slot> slot;  ///< the tensor of the container `from`; none if the file was copied as it is
    Done done = Done::kConverted;
  };
  std::vector<File> files;  ///< by path, if they were asked for
};

/// Writes the chosen tensors of a dump as another dump: those in containers of the Ascend runtime as .npy files under MindSpore's names,
/// in their own order; other files, graphs and metadata are copied. Every file appears complete or not at all, and what an earlier,
/// interrupted run has written stays.
/// Error: kInvalidArgument (no dump; an output inside of it), kIoError, kInterrupted.
Result<ConvertResult> convert_dump(Session& session, const TensorQuery& query, const ConvertOptions& options);

}  // namespace msdbg
