// Words about the parameters of checkpoints that tables and answers share.
#pragma once

#include <string>

#include "msdbg/checkpoint.h"

namespace msdbg {

/// In the order in which they are counted.
inline constexpr ChangeKind kChangeOrder[] = {ChangeKind::kChanged, ChangeKind::kRetyped, ChangeKind::kReshaped,    ChangeKind::kRenamed,
                                              ChangeKind::kLost,    ChangeKind::kAdded,   ChangeKind::kNotCompared, ChangeKind::kUnchanged};

/// `float32[3,5]`, or `float32[3,5] -> float16[3,5]`.
std::string types_text(const ParameterChange& change);

}  // namespace msdbg
