// The work of diff that several processes share.
#pragma once

#include "msdbg/shared.h"

namespace msdbg {

/// Comparing pairs of tensors for diff_sessions().
inline constexpr std::string_view kCompareWork = "compare";
SharedHandler compare_handler(OpenLocated open);

}  // namespace msdbg
