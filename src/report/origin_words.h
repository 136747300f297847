// Wording shared by the text and the page of an origin.
#pragma once

#include <string>

#include "msdbg/report.h"

namespace msdbg {

/// `all 4 rows are affected (24 to 29 each)`. Precondition: origin.rows.
std::string rows_text(const Origin& origin);
/// `has no NaN, it is all zero`: for the output of an operator that absorbed bad values.
std::string absorbed_text(const Stats& stats);
/// Flags and axes are inputs too, but their values are irrelevant.
bool worth_showing(const OriginInput& input);

}  // namespace msdbg
