// Constants of the recording format, shared by its writer and reader. Format: docs/recording.md.
#pragma once

#include <cstdint>
#include <string_view>

namespace msdbg::live {

inline constexpr std::string_view kRecordingMagic{"\x89MSDBGR\n", 8};  // marks the file as binary; a text-mode copy would damage it
inline constexpr uint32_t kRecordingVersion = 1;
inline constexpr uint32_t kRecordingOfRanksVersion = 2;  ///< the number of ranks follows
/// The longest frame. A client's messages stay near 3 MiB; a longer one is recorded as a note.
inline constexpr uint64_t kMaxFrameBytes = uint64_t{256} << 20;
/// grpc_status of the note about the end of the connection: UNAVAILABLE.
inline constexpr int kDisconnectedStatus = 14;

}  // namespace msdbg::live
