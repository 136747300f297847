// Parts and forms of node names: scopes separated by slashes, and the form for file names.
#pragma once

#include <string>
#include <string_view>

namespace msdbg {

/// Text after the last '/'; the whole name without one.
inline std::string_view last_component(std::string_view name) { return name.substr(name.rfind('/') + 1); }

/// Text before the last '/'; "" without one.
inline std::string_view scope_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

/// `Default/net/w` as `Default--net--w`: MindSpore's form of names in file names.
inline std::string with_dashes(std::string_view name) {
  std::string text;
  text.reserve(name.size() + 16);
  for (size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/')) {
    text.append(name, 0, slash).append("--");
    name.remove_prefix(slash + 1);
  }
  return text.append(name);
}

}  // namespace msdbg
