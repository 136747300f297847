// Reads tensors to tell whether ranks hold the same bits. The owner's thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/bits.h"
#include "msdbg/replicas.h"

namespace msdbg {

/// Equal for two tensors with the same type, shape and bits. Of tensors without elements, what their checksums or statistics tell; prints
/// of another kind say nothing about each other.
struct ReplicaPrint {
  ReplicaEvidence by = ReplicaEvidence::kElements;
  DType dtype = DType::kUnknown;
  SharedList<int64_t> shape;
  BitsPrint bits;  ///< of checksums, it is not known whether there is a NaN
  bool operator==(const ReplicaPrint&) const = default;
};

struct ReplicaRead {
  TensorId tensor;
  std::optional<ReplicaPrint> print;
  SharedText reason;  ///< why there is none
};
/// read_bits() of all of them; without elements, their checksums or statistics. Returns the bytes of the elements. Error: kInterrupted.
Result<uint64_t> read_replicas(Session& session, unsigned threads, std::span<ReplicaRead> reads);

/// The value of that name on the rank and in the graph of `there`.
std::optional<TensorId> counterpart(Session& session, const TensorId& id, const TensorId& there);

/// Elements that are compared at a time.
inline constexpr uint64_t kReplicaBlock = 65536;

/// One thread's block buffers.
struct ReplicaBuffers {
  std::vector<std::byte> a, b, c;
};

/// Fills what says how `difference.seen` differs from `difference.expected`: elements, their values and bits, or the problem.
void compare_replicas(Session& session, ReplicaBuffers& buffers, ReplicaDifference* difference);

}  // namespace msdbg
