// Decodes one TensorProto of an upload straight into its place: the elements are copied once.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "session/live/exchange.h"

namespace msdbg::live {

/// The bytes of one message, in the pieces in which they arrived.
using MessagePieces = std::vector<std::span<const std::byte>>;

enum class SliceResult : uint8_t {
  kTaken,
  kUndecodable,  ///< the message is not a TensorProto, or a length in it goes beyond its end
  kTooMuch,      ///< it brings more than the value at `upload->at` may have
};

/// Adds the slice to the value of `upload` that it names. Values come in the order of the question: one that is passed over has no
/// more slices. Elements of anything else are skipped and noted in the value that they came for; without an upload all are skipped.
SliceResult take_slice(MessagePieces message, ValueUpload* upload, std::atomic<uint64_t>& received);

}  // namespace msdbg::live
