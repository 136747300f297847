// What an origin's values say about the reason.
//
// The session's owner thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "msdbg/analysis.h"

namespace msdbg {

struct Reason {
  CauseKind kind = CauseKind::kUnknown;
  std::string what, evidence;  ///< as in Cause
};

/// An operator that multiplies two inputs: their elements, or rows of the one with columns of the other.
struct ProductRule {
  std::string_view op;  ///< in lower case
  uint32_t a = 0, b = 1;
  bool sums = true;
};
std::optional<ProductRule> product_rule(std::string_view op);
/// Whether each element of the output of such an operator (lower case) is one of input 0: views and copies.
bool passes_elements(std::string_view op);

/// Of the finite elements.
double largest_magnitude(const Stats& stats);

/// Whether a weight grew right before the step of the origin; what made it large in an earlier step may be its update.
bool changed_outside(const Origin& origin);

/// kUnknown where the values do not prove a reason.
Reason reason_of(const Session& session, const Origin& origin);

}  // namespace msdbg
