// The parameters of one step of a session, and reading two of them in lockstep.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "msdbg/checkpoint.h"

namespace msdbg::ckpt {

struct Parameter {
  std::string name;
  TensorId id;
  TensorInfo info;
  bool used = false;  ///< has been paired
};

/// Parameters with a value in the step, in graph order; if several graphs have a name, the first one counts. With `nodes`, only
/// these.
std::vector<Parameter> parameters_of(const ParameterSource& source, const std::vector<NodeRef>* nodes);

/// Passes blocks of both tensors to `take` until it returns false. Precondition: equal counts and known item sizes.
Status walk_pair(ElementReader& a, ElementReader& b, const std::function<bool(const std::byte* a, const std::byte* b, size_t n)>& take);

/// Compares all elements, with tolerance 0.
Result<Comparison> compare_values(Session& a, const TensorId& id_a, Session& b, const TensorId& id_b);
/// Stops at the first difference.
Result<bool> same_bytes(Session& a, const TensorId& id_a, Session& b, const TensorId& id_b);

/// A hash of the content: equal tensors have equal fingerprints.
struct Fingerprint {
  uint64_t hash = 0;
  bool constant = true;  ///< all elements are equal
  bool operator==(const Fingerprint&) const = default;
};
Result<Fingerprint> fingerprint(Session& session, const TensorId& id);

}  // namespace msdbg::ckpt
