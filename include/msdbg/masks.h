// Masks: infinities that a program writes on purpose, for a softmax to absorb.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "msdbg/graph.h"
#include "msdbg/simd.h"

namespace msdbg {

/// Operators that only copy: they write a value where they are told to, and it may be a tensor of one element.
bool only_copies(std::string_view op);
/// Operators that keep values within limits; one that is infinite is no limit.
bool takes_limits(std::string_view op);
/// Operators that make values from numbers alone, such as ones, or a range.
bool makes_values(std::string_view op);
/// Operators that add a mask to scores. `taken`: what they were given and is known.
bool adds_mask(std::string_view op, const Stats& result, std::span<const Stats> taken);
/// Whether an output is a table that only the operator's derivative reads, infinite where nothing can be: CTC's logarithms of
/// probabilities, and attention's logarithms of sums, which are padded.
bool is_table_with_infinities(std::string_view op, uint32_t slot);
/// An argument of the operator that is an infinity; nullptr without one.
const Attribute* infinite_argument(const std::vector<Attribute>& attributes);
/// 0 where a value counts, -Inf elsewhere. `held`: a parameter or buffer, whose finite elements must all be 0.
bool is_additive_mask(const Stats& stats, bool held);
/// A minimum that was never taken is +Inf everywhere, a maximum -Inf.
bool is_unset_limit(const Stats& stats);

}  // namespace msdbg
