// Wording shared by the text and the page of an origin.
#pragma once

#include <string>

#include "msdbg/report.h"

namespace msdbg {

/// `104 of 192 elements are -Inf, none NaN; first at [0,0] [0,4]; all 4 rows are affected (24 to 29 each)`
std::string broken_text(const Origin& origin);
/// `finite, min 0, max 2, 104 zeros at the same places`
std::string input_text(const OriginInput& input);
/// `has no NaN, it is all zero`: for the output of an operator that absorbed bad values.
std::string absorbed_text(const Stats& stats);
/// Flags and axes are inputs too, but their values are irrelevant.
bool worth_showing(const OriginInput& input);

}  // namespace msdbg
