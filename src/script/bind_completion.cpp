// What the prompt asks of C++ for completion and help: node names, file names, classes, and the texts that the program carries.
#include <algorithm>
#include <filesystem>

#include "script/embedded.h"
#include "script/name_index.h"
#include "script/objects.h"

namespace msdbg::script {
namespace {

namespace fs = std::filesystem;

void push_list(lua_State* L, const std::vector<std::string>& texts) {
  lua_createtable(L, static_cast<int>(texts.size()), 0);
  for (size_t i = 0; i < texts.size(); ++i) {
    push_text(L, texts[i]);
    lua_rawseti(L, -2, static_cast<int>(i) + 1);
  }
}

const NameIndex& names_of(SessionBox& box) {
  const auto graphs = box.open().graphs();
  if (box.names == nullptr || !box.names->is_of(graphs)) {
    box.names = std::make_shared<NameIndex>(std::vector<GraphPtr>(graphs.begin(), graphs.end()));
  }
  return *box.names;
}

// core.node_names(session, part, limit): the ways `part` can go on, one level of scopes further.
int node_names(lua_State* L) {
  const auto box = object_argument<SessionBox>(L, 1, "node_names: session");
  const std::string part = text_argument(L, 2, "node_names: part");
  const auto limit = static_cast<size_t>(integer_argument(L, 3, "node_names: limit"));
  push_list(L, names_of(*box).complete(part, limit));
  return 1;
}

// core.op_types(session) -> the operator types that occur
int op_types(lua_State* L) {
  push_list(L, names_of(*object_argument<SessionBox>(L, 1, "op_types: session")).op_types());
  return 1;
}

// core.file_names(part, limit): files and directories that begin with `part`; directories end in a slash.
int file_names(lua_State* L) {
  const std::string part = text_argument(L, 1, "file_names: part");
  const auto limit = static_cast<size_t>(integer_argument(L, 2, "file_names: limit"));
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
  push_list(L, found);
  return 1;
}

// core.classes() -> the names of all classes that C++ defines
int class_names(lua_State* L) {
  std::vector<std::string> names;
  for (lua_pushnil(L); lua_next(L, LUA_REGISTRYINDEX) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING || !lua_istable(L, -1)) continue;
    const std::string key = lua_tostring(L, -2);
    lua_getfield(L, -1, "methods");
    if (key.starts_with("msdbg.") && lua_istable(L, -1)) names.push_back(key.substr(6));
    lua_pop(L, 1);
  }
  std::sort(names.begin(), names.end());
  push_list(L, names);
  return 1;
}

// core.embedded_text(path) -> the text of a file that the program carries, or nil
int embedded_text(lua_State* L) {
  if (const auto text = embedded_file(text_argument(L, 1, "embedded_text: path")))
    push_text(L, *text);
  else
    lua_pushnil(L);
  return 1;
}

// core.embedded_names() -> their paths
int embedded_names(lua_State* L) {
  const auto names = embedded_files();
  push_list(L, std::vector<std::string>(names.begin(), names.end()));
  return 1;
}

}  // namespace

void bind_completion(lua_State* L) {
  for (const Member& member : {Member{"node_names", guard<node_names>}, Member{"op_types", guard<op_types>},
                               Member{"file_names", guard<file_names>}, Member{"classes", guard<class_names>},
                               Member{"embedded_text", guard<embedded_text>}, Member{"embedded_names", guard<embedded_names>}}) {
    lua_pushcfunction(L, member.function);
    lua_setfield(L, -2, member.name);
  }
}

}  // namespace msdbg::script
