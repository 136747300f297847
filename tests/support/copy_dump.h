// Dumps of the tests, copied while other tests read them.
#pragma once

#include <filesystem>
#include <string>

namespace msdbg::test {

/// Copies all files but the index: another test may be writing it, and its temporary files come and go.
inline void copy_dump(const std::filesystem::path& from, const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  fs::create_directories(to);
  for (const fs::directory_entry& each : fs::directory_iterator(from)) {
    const fs::path name = each.path().filename();
    if (name.string().starts_with(".msdbg-index")) continue;
    if (each.is_directory() && !each.is_symlink()) copy_dump(each.path(), to / name);
    else fs::copy(each.path(), to / name, fs::copy_options::copy_symlinks | fs::copy_options::overwrite_existing);
  }
}

}  // namespace msdbg::test
