// Limits on what one training may use in this process, whatever it sends. docs/live-protocol.md lists them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace msdbg::live::limits {

inline constexpr int kMessageBytes = 16 << 20;               // a slice of a graph or tensor is slightly larger than 3 MiB
inline constexpr uint64_t kSmallMessageBytes = 1 << 20;      // a message without a slice
inline constexpr uint64_t kMessageOverhead = 64;             // counted for a message in addition to its bytes
inline constexpr uint64_t kValueBytes = (uint64_t{2} << 30) - (uint64_t{3} << 20);  // a client that is asked for more aborts
inline constexpr uint64_t kUnaskedBytes = uint64_t{64} << 20;                       // of unrequested elements in one call
inline constexpr size_t kHits = 200000;                      // in one suspension
inline constexpr size_t kAnswers = 4096;                     // shapes or statistics in one call; at most 2000 are requested
inline constexpr size_t kAxes = 64;                          // of a tensor
inline constexpr size_t kConnections = 63;                   // open at once besides those of the ranks
inline constexpr int kCallsPerConnection = 8;                // a client has two or three
inline constexpr size_t kUnknownCalls = 4;                   // open at once and per rank, of connections without a rank
inline constexpr size_t kReasonBytes = 1000;                 // of the text why a step ended in its midst
inline constexpr size_t kNotes = 1000;                       // problems and refusals reported about one process

inline constexpr uint64_t kGraphBytesPerNode = 1024;         // approximate memory of a node
inline constexpr uint64_t kGraphBytesPerByte = 3;            // and of a byte of its message, with names in several tables

inline size_t connections(int ranks) { return kConnections + static_cast<size_t>(ranks); }

/// For all graphs of a session together, including earlier trainings.
inline uint64_t graph_bytes(uint64_t mem_limit) { return std::max(mem_limit / 2, uint64_t{128} << 20); }

/// For graphs, hits and answers that the session has not processed yet.
inline uint64_t waiting_bytes(uint64_t mem_limit) { return std::clamp(mem_limit / 8, uint64_t{48} << 20, uint64_t{1} << 30); }

}  // namespace msdbg::live::limits
