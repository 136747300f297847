// Reads the file that a Recorder wrote, frame by frame. Format: docs/recording.md.
//
// Memory is bounded by the longest frame. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "msdbg/base.h"
#include "msdbg/file.h"
#include "session/live/exchange.h"

namespace msdbg::live {

struct Frame {
  enum class Direction : uint8_t { kClient, kServer, kNote };
  Direction direction = Direction::kNote;
  int rank = 0;
  Rpc rpc = Rpc::kWaitCmd;
  uint64_t call = 0;
  uint32_t index = 0;
  uint64_t at_us = 0;
  std::string payload;
  int grpc_status = 0;   ///< nonzero: the call was refused
  std::string text;      ///< of a note or a refusal
  uint64_t offset = 0;   ///< of the frame in the file, for seek()
};

class RecordingReader {
 public:
  /// Error: kNotFound, kIoError; kCorrupt if the file does not start like a recording; kUnsupported for another version.
  static Result<std::unique_ptr<RecordingReader>> open(const std::string& path);
  /// True if the file starts like a recording.
  static bool begins_as_recording(const std::string& path);
  RecordingReader(const RecordingReader&) = delete;
  RecordingReader& operator=(const RecordingReader&) = delete;

  /// Number of ranks; every frame is of one of them.
  int ranks() const { return ranks_; }
  /// False at the end of the file, at a truncated end (truncated()) or at damage (problem()).
  bool next(Frame* frame);
  /// The file ends in the middle of a frame: the recorder could not finish it.
  bool truncated() const { return truncated_; }
  /// kCorrupt or kIoError with the position; ok without problems.
  const Status& problem() const { return problem_; }
  /// Continues at the frame that began there.
  void seek(uint64_t offset);

 private:
  explicit RecordingReader(File file);
  WireReader rest();
  bool read_frame(WireReader reader, Frame* frame);
  bool stop(const std::string& what);
  bool stop(Status status);

  const File file_;
  FileWindow window_;
  uint64_t offset_;         // of the next frame
  int ranks_ = 1;
  bool truncated_ = false;
  Status problem_;
};

}  // namespace msdbg::live
