// Decodes one TensorProto of an upload straight into its place: the elements are copied once.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <atomic>

#include "session/live/exchange.h"

namespace msdbg::live {

/// Adds the slice to `upload`; elements of another tensor than the one asked for are skipped and noted there.
/// False when the message cannot be decoded.
bool take_slice(grpc::ByteBuffer& message, ValueUpload& upload, std::atomic<uint64_t>& received);

}  // namespace msdbg::live
