// Where in the user's program a node comes from.
#include <fmt/format.h>

#include <algorithm>

#include "msdbg/graph.h"

namespace msdbg {

const StackFrame* user_frame(const Node& node) {
  const auto outside = std::find_if(node.stack.begin(), node.stack.end(), [](const StackFrame& frame) {
    const std::string& path = frame.file.get();
    const bool installed = path.find("/site-packages/") != std::string::npos || path.find("/dist-packages/") != std::string::npos;
    return !installed && path.find("/mindspore/") == std::string::npos && !path.starts_with("mindspore/");
  });
  if (outside != node.stack.end()) return &*outside;
  return node.stack.empty() ? nullptr : &node.stack.front();
}

std::string source_place(const Node& node, bool full) {
  const StackFrame* found = user_frame(node);
  if (!found) return "";
  const StackFrame& frame = *found;
  const size_t slash = full ? std::string::npos : frame.file->rfind('/');
  const std::string file = frame.file->substr(slash + 1);
  return printable(frame.line > 0 ? fmt::format("{}:{}", file, frame.line) : file);
}

}  // namespace msdbg
