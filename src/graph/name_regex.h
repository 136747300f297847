// Regular expressions on names. Private to the graph module, and the only place that sees <regex>.
#pragma once

#include <memory>
#include <string>

#include "msdbg/base.h"

namespace msdbg {

class NameRegex {
 public:
  /// ECMAScript without back-references. Error: kInvalidArgument with the engine's message.
  static Result<std::shared_ptr<const NameRegex>> compile(const std::string& pattern, bool ignore_case);
  virtual ~NameRegex() = default;

  /// True if the expression occurs anywhere in `name`. Takes time pattern * name; names above 4096 characters, which only damaged
  /// files have, never match.
  virtual bool occurs_in(const std::string& name) const = 0;
};

}  // namespace msdbg
