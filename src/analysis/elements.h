// Locates the bad elements in a tensor. Reads the elements in blocks; the whole tensor is never in memory.
#pragma once

#include "msdbg/analysis.h"

namespace msdbg {

/// Fills `first` and `rows` of `origin`. They stay empty if the tensor cannot be read; its statistics remain.
void locate_bad_elements(Session& session, Predicate::Builtin which, Origin& origin);

/// Sets OriginInput::zeros_at_bad: true for an input with as many zeros as there are bad elements, at the same positions.
void compare_zeros(Session& session, Predicate::Builtin which, Origin& origin);

}  // namespace msdbg
