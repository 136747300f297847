// Where in a tensor the bad elements are. The elements are read in blocks; the tensor is never held whole.
#pragma once

#include "msdbg/analysis.h"

namespace msdbg {

/// Fills `first` and `rows` of `origin`. A tensor that cannot be read leaves them empty; its statistics remain.
void locate_bad_elements(Session& session, Predicate::Builtin which, Origin& origin);

/// Sets OriginInput::zeros_at_bad: an input whose zeros are as many as the bad elements, and in the same places.
void compare_zeros(Session& session, Predicate::Builtin which, Origin& origin);

}  // namespace msdbg
