// Cells that every table writes the same way.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "msdbg/base.h"
#include "msdbg/tensor.h"

namespace msdbg {

/// `float32[32,10]`
inline std::string type_text(DType dtype, const Shape& shape) { return fmt::format("{}{}", dtype_name(dtype), shape_text(shape)); }
/// `-` for a missing value.
inline std::string value_text(double value) { return std::isnan(value) ? "-" : format_short(value); }

}  // namespace msdbg
