// What goes over the wire, as the session sees it: complete messages in the order of their arrival.
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
/// By method name, with or without the path of the service.
std::optional<Rpc> find_rpc(std::string_view name);
/// True where a call takes any number of messages.
bool is_streaming(Rpc rpc);

/// One tensor that a view asks for, and what came of it.
struct UploadedValue {
  std::string node, slot, iter;      ///< as asked for
  uint64_t most_bytes = UINT64_MAX;  ///< elements beyond these are refused
  uint64_t first = 0, bytes = 0;     ///< where its elements are in the buffer
  std::vector<int64_t> dims;
  int data_type = 0;
  uint64_t slices = 0;
  bool finished = false;
  std::string problem;               ///< "" or what did not fit

  /// The training said that it does not have it.
  bool missing() const { return slices > 0 && data_type == 0; }
};

/// Where the elements of the tensors of one view arrive, one after the other. Shared, because an upload that comes after its
/// deadline still needs a place. Written by one transport thread; read after the kValues event.
struct ValueUpload {
  std::vector<UploadedValue> values;  ///< in the order of the question
  size_t at = 0;                      ///< the one that is awaited; past the last one when all have come
  UploadBuffer buffer;
  std::string problem;                ///< "" or why no more came

  /// Elements beyond these are refused, whatever they belong to.
  uint64_t most_bytes() const;
  std::span<const std::byte> elements(const UploadedValue& value) const { return buffer.bytes().subspan(value.first, value.bytes); }
};

/// In a recording: what led to a suspension, which need not be what the replay was asked for.
struct CameFrom {
  std::string run_level, node;  ///< of the RunCMD
  int64_t last_step = 0;        ///< of the suspension before
  std::string last_node;
};

/// One thing that happened at the wire.
struct WireEvent {
  enum class Kind : uint8_t {
    kHandshake,  ///< metadata; already answered
    kFarewell,   ///< metadata
    kGraphs,     ///< graphs
    kWait,       ///< metadata; open until Transport::answer()
    kHits,
    kBases,
    kSummaries,
    kValues,     ///< the upload handed to Transport::expect() is complete, or no more of it comes
    kHeartbeat,
    kGone,       ///< the connection of the training ended; text says how
    kRefused,    ///< a peer was refused; text
    kProblem,    ///< odd input that was survived; text
  };
  Kind kind = Kind::kProblem;
  std::string peer;
  debugger::Metadata metadata;
  std::vector<std::string> graphs;  ///< serialized GraphProtos
  std::vector<debugger::WatchpointHit> hits;
  size_t left_out = 0;                ///< hits beyond what is kept
  std::vector<debugger::TensorBase> bases;
  std::vector<debugger::TensorSummary> summaries;
  std::shared_ptr<ValueUpload> values;
  std::optional<CameFrom> came_from;  ///< kWait of a recording
  bool turned_away = false;           ///< kWait: its handshake was refused while another training was debugged
  std::string text;
  Charge charge;                      ///< for graphs, hits, bases and summaries
};

}  // namespace msdbg::live
