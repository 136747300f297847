// Copies that differ: which of them are wrong, and which never were copies. The session's owner thread only.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/replica_parts.h"
#include "analysis/replica_steps.h"

namespace msdbg {

/// Whether all groups of ranks have the same size.
bool is_even(const Parts& equal);
/// Puts the sound group first where one has no NaN and all others have one.
bool put_nan_last(const Sighting& sighting, Parts& equal);
/// The same where the values of all others are out of all proportion. Reads one tensor of each group.
bool put_far_larger_last(Session& session, const Sighting& sighting, Parts& equal);
/// Whether the value was one constant in all earlier ones of `steps`, on the first rank. Shards begin with the same constants, such as the
/// zeros of an optimizer's state: that all ranks had them proves nothing.
bool was_constant_before(Session& session, const Sighting& sighting, std::span<const int64_t> steps, int64_t step);
/// A difference of a weight that came in with this state of its optimizer, on the same rank, is one of the state, which reaches the weight.
void tell_of_state(Session& session, ReplicaBuffers& buffers, TensorId state, ReplicaDifference* made);

}  // namespace msdbg
