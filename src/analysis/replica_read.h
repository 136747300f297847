// Reads tensors to tell whether ranks hold the same bits. Any thread that may open tensors.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "msdbg/replicas.h"

namespace msdbg {

/// Equal for two tensors with the same type, shape and bits, where any NaN equals any other; different otherwise but for one chance in
/// 2^128. Of tensors without elements, what their checksums or statistics tell; prints of another kind say nothing about each other.
struct ReplicaPrint {
  ReplicaEvidence by = ReplicaEvidence::kElements;
  DType dtype = DType::kUnknown;
  Shape shape;
  uint64_t low = 0, high = 0;
  bool nan = false;  ///< there is a NaN; not known of checksums
  auto operator<=>(const ReplicaPrint&) const = default;
};

/// One thread's block buffers.
struct ReplicaBuffers {
  std::vector<std::byte> a, b;
};

/// Reads the tensor once, in blocks; adds the bytes read to `bytes`. Without elements: its checksum or statistics.
/// Error: that of open_elements() or of a read; kInterrupted.
Result<ReplicaPrint> fingerprint(Session& session, const TensorId& id, ReplicaBuffers& buffers, uint64_t* bytes);

/// Fills what says how `difference.seen` differs from `difference.expected`: elements, their values and bits, or the problem.
void compare_replicas(Session& session, ReplicaBuffers& buffers, ReplicaDifference* difference);

}  // namespace msdbg
