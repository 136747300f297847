// The Python dictionary at the head of an .npy file. Private to the module.
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

}  // namespace msdbg
