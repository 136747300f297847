// The wire traffic as the session sees it: complete messages in the order of their arrival.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "debug_graph.pb.h"
#include "debug_grpc.pb.h"
#include "msdbg/base.h"
#include "session/live/charge.h"
#include "session/live/upload_buffer.h"

namespace msdbg::live {

enum class Rpc : uint8_t {
  kWaitCmd, kSendMetadata, kSendGraph, kSendMultiGraphs, kSendTensors, kSendTensorBase, kSendTensorStats,
  kSendWatchpointHits, kSendHeartbeat,
};
inline constexpr int kRpcCount = 9;
std::string_view rpc_name(Rpc rpc);  ///< "WaitCMD", ...
/// By method name, with or without the service path.
std::optional<Rpc> find_rpc(std::string_view name);
/// True if a call may have any number of messages.
bool is_streaming(Rpc rpc);

/// One tensor that a view requests, and its result.
struct UploadedValue {
  std::string node, slot, iter;      ///< as requested
  uint64_t most_bytes = UINT64_MAX;  ///< more elements are refused
  uint64_t first = 0, bytes = 0;     ///< position of its elements in the buffer
  std::vector<int64_t> dims;
  int data_type = 0;
  uint64_t slices = 0;
  bool finished = false;
  std::string problem;               ///< "", or what did not match

  /// The training reported that it does not have the tensor.
  bool missing() const { return slices > 0 && data_type == 0; }
};

/// Receives the elements of one view's tensors, one after the other. Shared, because an upload that arrives after its deadline
/// still needs a destination. Written by one transport thread; read after the kValues event.
struct ValueUpload {
  std::vector<UploadedValue> values;  ///< in the order of the question
  size_t at = 0;                      ///< index of the awaited value; past the last one when all have arrived
  UploadBuffer buffer;
  std::string problem;                ///< "", or why no more arrived

  /// The limit for all elements, whatever they belong to.
  uint64_t most_bytes() const;
  std::span<const std::byte> elements(const UploadedValue& value) const { return buffer.bytes().subspan(value.first, value.bytes); }
};

/// In a recording: what led to a suspension. It may differ from the command given to the replay.
struct CameFrom {
  std::string run_level, node;  ///< of the RunCMD
  int64_t last_step = 0;        ///< of the previous suspension
  std::string last_node;
};

/// One event on the wire.
struct WireEvent {
  enum class Kind : uint8_t {
    kHandshake,  ///< metadata; already answered
    kFarewell,   ///< metadata
    kGraphs,     ///< graphs
    kWait,       ///< metadata; open until Transport::answer()
    kHits,
    kBases,
    kSummaries,
    kValues,     ///< the upload passed to Transport::expect() is complete, or no more of it arrives
    kHeartbeat,
    kDisconnected,       ///< the connection of the training ended; text has the reason
    kRefused,    ///< a peer was refused; text
    kProblem,    ///< unexpected input that was tolerated; text
  };
  Kind kind = Kind::kProblem;
  std::string peer;
  debugger::Metadata metadata;
  std::vector<std::string> graphs;  ///< serialized GraphProtos
  std::vector<debugger::WatchpointHit> hits;
  size_t left_out = 0;                ///< hits beyond the limit
  std::vector<debugger::TensorBase> bases;
  std::vector<debugger::TensorSummary> summaries;
  std::shared_ptr<ValueUpload> values;
  std::optional<CameFrom> came_from;  ///< kWait of a recording
  bool turned_away = false;           ///< kWait: its handshake was refused while another training was debugged
  std::string text;
  Charge charge;                      ///< for graphs, hits, bases and summaries
};

}  // namespace msdbg::live
