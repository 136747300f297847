#include "session/live/exchange.h"

namespace msdbg::live {
namespace {

constexpr std::string_view kNames[kRpcCount] = {
    "WaitCMD",        "SendMetadata",    "SendGraph",          "SendMultiGraphs", "SendTensors",
    "SendTensorBase", "SendTensorStats", "SendWatchpointHits", "SendHeartbeat",
};

}  // namespace

uint64_t ValueUpload::most_bytes() const {
  uint64_t sum = 0;
  for (const UploadedValue& value : values) sum = value.most_bytes > UINT64_MAX - sum ? UINT64_MAX : sum + value.most_bytes;
  return sum;
}

std::string_view rpc_name(Rpc rpc) { return kNames[static_cast<size_t>(rpc)]; }

std::optional<Rpc> find_rpc(std::string_view name) {
  constexpr std::string_view kService = "/debugger.EventListener/";
  if (name.substr(0, kService.size()) == kService) name.remove_prefix(kService.size());
  for (int i = 0; i < kRpcCount; ++i) {
    if (kNames[i] == name) return static_cast<Rpc>(i);
  }
  return std::nullopt;
}

bool is_streaming(Rpc rpc) { return rpc != Rpc::kWaitCmd && rpc != Rpc::kSendMetadata && rpc != Rpc::kSendHeartbeat; }

}  // namespace msdbg::live
