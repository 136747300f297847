// Numbers of the recording format that its writer and its reader share. Format: docs/recording.md.
#pragma once

#include <cstdint>
#include <string_view>

namespace msdbg::live {

inline constexpr std::string_view kRecordingMagic{"\x89MSDBGR\n", 8};  // not text, and damaged by a text-mode copy
inline constexpr uint32_t kRecordingVersion = 1;
/// Longest frame. Messages of a client stay near 3 MiB; what is longer is recorded as a note.
inline constexpr uint64_t kMaxFrameBytes = uint64_t{256} << 20;
/// grpc_status of the note that says that the connection ended: UNAVAILABLE.
inline constexpr int kGoneStatus = 14;

}  // namespace msdbg::live
