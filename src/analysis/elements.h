// Where in a tensor the bad elements are. The elements are read in blocks; the tensor is never held whole.
#pragma once

#include "msdbg/analysis.h"

namespace msdbg {

/// Fills `first` and `rows` of `origin`. A tensor that cannot be read leaves them empty; its statistics still stand.
void locate_bad_elements(Session& session, Predicate::Builtin which, Origin& origin);

}  // namespace msdbg
