#include "msdbg/base.h"

namespace msdbg {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kNotFound: return "not_found";
    case Code::kUnsupported: return "unsupported";
    case Code::kIoError: return "io_error";
    case Code::kCorrupt: return "corrupt";
    case Code::kNoData: return "no_data";
    case Code::kOutOfMemory: return "out_of_memory";
    case Code::kInterrupted: return "interrupted";
    case Code::kPeerLost: return "peer_lost";
    case Code::kInternal: return "internal";
  }
  return "internal";
}

}  // namespace msdbg
