// Where the index of a dump is kept: beside the dump, or in the user's cache directory.
#pragma once

#include <optional>
#include <string>

namespace msdbg::dump {

struct IndexPlace {
  std::string path;
  bool beside = false;  ///< in the dump's root: the same file system, with the same clock
};

inline constexpr const char* kIndexName = ".msdbg-index.sqlite";

/// Makes the directory of an index that is not beside the dump.
void make_place(const IndexPlace& place);
/// An index that exists; nullopt without one.
std::optional<IndexPlace> existing_index(const std::string& root);
/// Where a new one belongs; nullopt if there is no place. `plain`: the root is itself a directory of tensors, which the index must not
/// change.
std::optional<IndexPlace> new_index(const std::string& root, bool plain);

}  // namespace msdbg::dump
