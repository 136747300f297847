// Parses the Python dictionary at the head of an .npy file, and NumPy's names of element types. Private to the module.
#pragma once

#include <string>
#include <string_view>

#include "msdbg/tensor.h"

namespace msdbg {

struct NpyDictionary {
  std::string descr;  ///< the string, or the raw text of a list of fields
  bool fortran_order = false;
  Shape shape;
};

/// Accepts keys in any order, both kinds of quotes, commas and blanks wherever Python does, and unknown keys.
/// Error: kCorrupt with what was expected and where.
Result<NpyDictionary> parse_npy_dictionary(std::string_view text);

/// "f4", "u1", ...: kind and bytes; kUnknown for types that are not in the table.
DType dtype_from_npy(std::string_view kind_and_size);
/// Empty for types without a NumPy name.
std::string_view npy_of_dtype(DType dtype);

}  // namespace msdbg
