// Writes a live session's conversation to a file. Format: docs/recording.md.
//
// Any thread may call these functions; they never throw. A recording must not disturb the session: if the disk is full or writing
// fails, the recorder truncates the file after its last complete frame, reports it once, and then stays silent.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "msdbg/base.h"
#include "session/live/exchange.h"

namespace msdbg::live {

class Recorder {
 public:
  /// Error: kIoError; kInvalidArgument if the file exists and is not a recording (it is not overwritten).
  static Result<std::unique_ptr<Recorder>> create(const std::string& path, int ranks = 1);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// One message of the process of `rank`; `parts` are its bytes in order. A WaitCMD flushes: the training is now held, and the messages
  /// before it survive the end of this process.
  void client(int rank, Rpc rpc, uint64_t call, uint32_t index, std::span<const std::string_view> parts) noexcept;
  void server(int rank, Rpc rpc, uint64_t call, std::string_view payload) noexcept;
  /// The call ended with a status instead of a reply.
  void status(int rank, Rpc rpc, uint64_t call, int grpc_code, std::string_view text) noexcept;
  void note(int rank, std::string_view text) noexcept;
  /// The connection of the training ended.
  void disconnected(int rank, std::string_view text) noexcept;

  /// Passes buffered data to the operating system. One flush() returns the first problem; later calls return ok.
  Status flush() noexcept;

 private:
  struct Head;
  Recorder(int descriptor, std::string path);
  void append(const Head& head, std::span<const std::string_view> parts, bool flush_after) noexcept;
  void write_out();
  void fail(int error);
  bool write_all(const char* data, size_t size);

  std::mutex mutex_;
  const int descriptor_;
  const std::string path_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::string buffer_;        // complete frames only
  uint64_t written_ = 0;      // bytes of complete frames in the file
  bool broken_ = false;
  Status problem_;            // not yet reported
};

}  // namespace msdbg::live
