// C++ support for completion and help at the prompt: node names, file names, classes, and embedded texts.
#include <algorithm>
#include <filesystem>

#include "script/embedded.h"
#include "script/name_index.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

namespace fs = std::filesystem;

const NameIndex& names_of(SessionBox& box) {
  const auto graphs = box.open().graphs();
  if (box.names == nullptr || !box.names->is_of(graphs)) {
    box.names = std::make_shared<NameIndex>(std::vector<GraphPtr>(graphs.begin(), graphs.end()));
  }
  return *box.names;
}

// core.node_names(session, part, limit): the continuations of `part`, one more level of scopes.
int node_names(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "node_names: session");
  const std::string part = text_argument(L, 2, "node_names: part");
  const auto limit = static_cast<size_t>(integer_argument(L, 3, "node_names: limit", 0, 0, INT64_MAX));
  return give(L, names_of(*box).complete(part, limit));
}

// core.op_types(session) -> the operator types that occur
int op_types(lua_State* L) {
  return give(L, names_of(*object_argument<SessionBox>(L, 1, "op_types: session")).op_types());
}

// core.file_names(part, limit): files and directories that start with `part`; directories end in a slash.
int file_names(lua_State* L) {
  const std::string part = text_argument(L, 1, "file_names: part");
  const auto limit = static_cast<size_t>(integer_argument(L, 2, "file_names: limit", 0, 0, INT64_MAX));
  const size_t slash = part.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : part.substr(0, slash + 1);
  const std::string tail = slash == std::string::npos ? part : part.substr(slash + 1);
  std::vector<std::string> found;
  std::error_code error;
  fs::directory_iterator at(folder.empty() ? "." : folder, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(tail) || (tail.empty() && name.starts_with('.'))) continue;
    std::error_code ignored;
    found.push_back(folder + name + (at->is_directory(ignored) ? "/" : ""));
  }
  std::sort(found.begin(), found.end());
  if (found.size() > limit) found.resize(limit);
  return give(L, found);
}

// core.classes() -> the names of all classes that C++ defines
int class_names(lua_State* L) {
  std::vector<std::string> names;
  for_each_entry(L, LUA_REGISTRYINDEX, "classes", [&] {
    const std::string key = text_at(L, -2).value_or("");
    push_raw(L, -1, "methods");
    if (key.starts_with("msdbg.") && lua_istable(L, -1)) names.push_back(key.substr(6));
    lua_pop(L, 1);
  });
  std::sort(names.begin(), names.end());
  return give(L, names);
}

// core.embedded_text(path) -> the text of an embedded file, or nil
int embedded_text(lua_State* L) {
  return give(L, embedded_file(text_argument(L, 1, "embedded_text: path")));
}

// core.embedded_names() -> their paths
int embedded_names(lua_State* L) {
  return give(L, embedded_files());
}

}  // namespace

void bind_completion(lua_State* L) {
  add_functions(L, {{"node_names", guard<node_names>}, {"op_types", guard<op_types>},
                    {"file_names", guard<file_names>}, {"classes", guard<class_names>},
                    {"embedded_text", guard<embedded_text>}, {"embedded_names", guard<embedded_names>}});
}

}  // namespace msdbg::script
