// The Python dictionary at the head of an .npy file, and the element types in its words. Private to the module.
#pragma once

#include <string>
#include <string_view>

#include "msdbg/tensor.h"

namespace msdbg {

struct NpyDictionary {
  std::string descr;  ///< the string, or the raw text when it is a list of fields
  bool fortran_order = false;
  Shape shape;
};

/// Takes any order of keys, either quote, commas and blanks wherever Python takes them, and keys it does not know.
/// Error: kCorrupt naming what was expected where.
Result<NpyDictionary> parse_npy_dictionary(std::string_view text);

/// "f4", "u1", ...: kind and bytes; kUnknown for what is not in the table of types.
DType dtype_from_npy(std::string_view kind_and_size);
/// Empty for types that NumPy has no name for.
std::string_view npy_of_dtype(DType dtype);

}  // namespace msdbg
