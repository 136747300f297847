// "float32[32,10]", as every table names a tensor's type.
#pragma once

#include <fmt/format.h>

#include <string>

#include "msdbg/tensor.h"

namespace msdbg {

inline std::string type_text(DType dtype, const Shape& shape) { return fmt::format("{}{}", dtype_name(dtype), shape_text(shape)); }

}  // namespace msdbg
