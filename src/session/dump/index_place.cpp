#include "session/dump/index_place.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "msdbg/hash.h"
#include "session/dump/directory.h"

namespace msdbg::dump {
namespace {

/// Without links: SQLite refuses to follow them.
std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? std::optional<std::string>(real.get()) : std::nullopt;
}

std::optional<std::string> cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/msdbg";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.cache/msdbg";
  return std::nullopt;
}

/// One file for each dump, by its path.
std::optional<IndexPlace> in_cache(const std::string& real_root) {
  const std::optional<std::string> directory = cache_directory();
  if (!directory) return std::nullopt;
  const std::optional<std::string> real = real_path(*directory);
  return IndexPlace{fmt::format("{}/{}-{:016x}.sqlite", real.value_or(*directory), base_name(real_root), hash_of(real_root)), false};
}

}  // namespace

void make_place(const IndexPlace& place) {
  if (place.beside) return;
  std::error_code ignored;
  std::filesystem::create_directories(parent_path(place.path), ignored);
}

std::optional<IndexPlace> existing_index(const std::string& root) {
  const std::optional<std::string> real = real_path(root);
  if (!real) return std::nullopt;
  IndexPlace beside{join_path(*real, kIndexName), true};
  const bool there = exists(beside.path);
  if (there && ::access(real->c_str(), W_OK) == 0) return beside;
  std::optional<IndexPlace> cached = in_cache(*real);
  if (cached && exists(cached->path)) return cached;
  return there ? std::optional(std::move(beside)) : std::nullopt;
}

std::optional<IndexPlace> new_index(const std::string& root, bool plain) {
  const std::optional<std::string> real = real_path(root);
  if (!real) return std::nullopt;
  if (!plain && ::access(real->c_str(), W_OK) == 0) return IndexPlace{join_path(*real, kIndexName), true};
  return in_cache(*real);
}

}  // namespace msdbg::dump
