// Option `when` of a search: what counts as bad, as text or as a Lua function of a tensor.
#pragma once

#include <memory>
#include <string>

#include "script/objects.h"

namespace msdbg::script {

class ScriptPredicate {
 public:
  /// Reads the option of `call`; a function is kept as long as this lives and runs on `L`. Error (ScriptError): a text that means nothing.
  ScriptPredicate(lua_State* L, OptionTable& options, SessionBox& box, const std::string& call);

  const Predicate& predicate() const { return predicate_; }
  /// The function raised: it would do so on every tensor.
  bool failed() const { return !failure_->empty(); }
  /// Raises what the function raised first.
  void throw_failure() const;

 private:
  Predicate predicate_;
  std::shared_ptr<std::string> failure_ = std::make_shared<std::string>();
};

}  // namespace msdbg::script
