#include "script/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "script/embedded.h"

namespace msdbg::script {
namespace {

namespace fs = std::filesystem;

struct Found {
  std::string text, chunk;
};

bool is_library(const std::string& module) { return module == "msdbg" || module.starts_with("msdbg."); }

// Library chunks are always named "=msdbg.x": errors then point to the caller's file.
std::string chunk_name(const std::string& module, const std::string& path) {
  return is_library(module) ? "=" + (module == "msdbg" ? "msdbg.init" : module) : "@" + path;
}

// The library always comes from the program: another version may need other functions of msdbg.core.
std::vector<std::string> search_directories(const Vm& vm, const std::string& module) {
  std::vector<std::string> out;
  if (is_library(module)) {
    if (const std::string directory = development_scripts(); !directory.empty()) out.push_back(directory);
    return out;
  }
  if (!vm.script_dirs.empty()) out.push_back(vm.script_dirs.back());
  out.insert(out.end(), vm.options.search_path.begin(), vm.options.search_path.end());
  if (const char* more = std::getenv("MSDBG_SCRIPT_PATH")) {
    for (const std::string_view part : split(more, ':')) {
      if (!part.empty()) out.emplace_back(part);
    }
  }
  return out;
}

std::optional<Found> find_module(const Vm& vm, const std::string& module, std::string* tried) {
  std::string path = module;
  std::replace(path.begin(), path.end(), '.', '/');
  const std::string names[] = {path + ".lua", path + "/init.lua"};
  for (const std::string& directory : search_directories(vm, module)) {
    for (const std::string& name : names) {
      const std::string file = (fs::path(directory) / name).string();
      std::error_code error;
      if (fs::is_regular_file(file, error)) {
        auto text = read_script(file);
        if (!text) throw ScriptError(text.status());
        return Found{std::move(*text), chunk_name(module, file)};
      }
      *tried += fmt::format("\n\tno file '{}'", file);
    }
  }
  for (const std::string& name : names) {
    if (const auto text = embedded_file(name)) return Found{std::string(*text), chunk_name(module, name)};
  }
  return std::nullopt;
}

int search(lua_State* L) {
  const std::string module = text_argument(L, 1, "require: module name");
  std::string tried;
  const auto found = find_module(vm_of(L), module, &tried);
  if (!found) return give(L, tried);
  if (!load_text(L, found->text, found->chunk)) throw PendingError();
  if (module != "msdbg.strict" && !isolate(L)) throw PendingError();
  return 1;
}

}  // namespace

std::string development_scripts() {
  const char* directory = std::getenv("MSDBG_DEV_SCRIPTS");
  return directory != nullptr ? directory : "";
}

Result<std::string> read_script(const std::string& path) {
  const auto closer = [](FILE* file) {
    if (file != stdin) std::fclose(file);
  };
  std::unique_ptr<FILE, decltype(closer)> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"), closer);
  const auto failed = [&] {
    return Status(errno == ENOENT ? Code::kNotFound : Code::kIoError,
                  fmt::format("script {}: {}", path, std::strerror(errno)));
  };
  if (!file) return failed();
  std::string text;
  char block[16384];
  errno = 0;
  while (const size_t n = std::fread(block, 1, sizeof block, file.get())) text.append(block, n);
  if (std::ferror(file.get())) return failed();
  return text;
}

bool load_text(lua_State* L, std::string_view text, const std::string& chunk) {
  // Keep the newline: line numbers stay correct.
  if (text.starts_with('#')) text.remove_prefix(std::min(text.find('\n'), text.size()));
  if (luaL_loadbufferx(L, text.data(), text.size(), chunk.c_str(), "t") == 0) return true;
  const std::string message = text_at(L, -1).value_or("cannot be compiled");
  lua_pop(L, 1);
  push_error(L, "syntax", message, true);
  lua_pushnil(L);  // the message already names the position
  lua_setfield(L, -2, "where");
  return false;
}

bool isolate(lua_State* L) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "msdbg.strict");
  if (!protected_call(L, 1, 1)) return false;
  push_raw(L, -1, "environment");
  lua_remove(L, -2);
  if (!protected_call(L, 0, 1)) return false;
  lua_setfenv(L, -2);
  return true;
}

void install_loader(Vm& vm) {
  lua_State* L = vm.L;
  lua_getglobal(L, "table");
  push_raw(L, -1, "insert");
  lua_getglobal(L, "package");
  push_raw(L, -1, "loaders");
  lua_replace(L, -2);
  push(L, 2);
  lua_pushcfunction(L, guard<search>);
  lua_call(L, 3, 0);
  lua_pop(L, 1);
  if (const std::string directory = development_scripts(); !directory.empty()) {
    log(LogLevel::kWarning, fmt::format("the Lua library and the shipped rules are read from {} (MSDBG_DEV_SCRIPTS)", directory));
  }
}

}  // namespace msdbg::script
