// Decodes one TensorProto of an upload directly into its destination: elements are copied once.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "session/live/exchange.h"

namespace msdbg::live {

/// The bytes of one message, in pieces as they arrived.
using MessagePieces = std::vector<std::span<const std::byte>>;

enum class SliceResult : uint8_t {
  kTaken,
  kUndecodable,  ///< the message is not a TensorProto, or a length exceeds the message
  kTooMuch,      ///< it exceeds the maximum of the value at `upload->at`
};

/// Appends the slice to the value of `upload` that it names. Values arrive in the order of the question: a skipped value has no
/// more slices. Elements of anything else are skipped and noted as a problem of the awaited value; without an upload all are
/// skipped.
SliceResult take_slice(MessagePieces message, ValueUpload* upload, std::atomic<uint64_t>& received);

}  // namespace msdbg::live
