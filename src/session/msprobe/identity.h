// Which call of one step is which call of another.
#pragma once

#include <string>

#include "msdbg/graph.h"

namespace msdbg::msprobe {

/// A call is the same in another step if it has the same name and comes from the same line and module. An exchange also has the same
/// arguments, such as the rank that it sends to, and an optimizer's call works on the same parameter: counts are per API and step, so
/// `Tensor.add_.0` may be a weight in one step and its momentum in the next.
struct CallIdentity {
  NodeId node = kNoNode;
  std::string frames;   ///< innermost, and the user's first; "" if unknown
  std::string caller;   ///< "" if unknown
  std::string parameter;  ///< of an optimizer's call; "" if unknown, as in a step whose parameters are NaN
  std::string subject;  ///< optimizer calls: the shapes; exchanges: their arguments; backward calls: the forward node

  /// The innermost frame and the user's first.
  static std::string frames_of(const SharedList<StackFrame>& stack);

  bool fits(const CallIdentity& other) const;
  /// Takes over what was unknown.
  void learn(const CallIdentity& other);
};

}  // namespace msdbg::msprobe
