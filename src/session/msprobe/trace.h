// Where calls came from: stack.json (Python frames) and construct.json (the module that called).
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "msdbg/graph.h"

namespace msdbg::msprobe {

/// The frames of each entry, innermost first, without the recorder's own.
struct Stacks {
  std::unordered_map<std::string, SharedList<StackFrame>> of;
  bool by_entry = false;  ///< the form of 1.x
  std::string problem;    ///< why not all of it was read
};
Stacks read_stacks(std::string text);

/// The caller of each entry; "" where the recorder does not know it.
struct Callers {
  std::unordered_map<std::string, std::string> of;
  std::vector<std::string> order;  ///< the entries, as in the file
  std::string problem;
};
Callers read_callers(std::string text);

/// `File PATH, line N, in FUNC, \n CODE`. A path may hold commas.
StackFrame parse_frame(std::string_view text);

}  // namespace msdbg::msprobe
