// Option `when` of a search: the definition of bad, as text or as a Lua function of a tensor.
#pragma once

#include <memory>
#include <string>

#include "script/objects.h"

namespace msdbg::script {

class ScriptPredicate {
 public:
  /// Reads the option of `call`. A function is kept during the lifetime of this object and runs on `L`. Error (ScriptError): an
  /// invalid text.
  ScriptPredicate(lua_State* L, OptionTable& options, SessionBox& box, const std::string& call);

  const Predicate& predicate() const { return predicate_; }
  /// The function raised an error; it would do so for every tensor.
  bool failed() const { return !failure_->empty(); }
  /// Raises the function's first error.
  void throw_failure() const;

 private:
  Predicate predicate_;
  std::shared_ptr<std::string> failure_ = std::make_shared<std::string>();
};

}  // namespace msdbg::script
