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
  kUndecodable,  ///< the message is no TensorProto, or a length in it goes beyond its end
  kTooMuch,      ///< it brings more than `upload` may have
};

/// Adds the slice to `upload`; elements of another tensor than the one asked for are skipped and noted there, all elements are
/// skipped without an upload.
SliceResult take_slice(MessagePieces message, ValueUpload* upload, std::atomic<uint64_t>& received);

}  // namespace msdbg::live
