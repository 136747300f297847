// A dump directory: files, each a path and its contents after two length bytes. It is opened and examined completely.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fuzz/session_walk.h"
#include "msdbg/dump.h"

namespace fs = std::filesystem;
using namespace msdbg;

namespace {

/// Inside `root`, whatever the input contains.
fs::path place(const fs::path& root, std::string_view path) {
  fs::path place = root;
  for (const std::string_view part : split(path, '/')) {
    const std::string name(part.substr(0, 255));
    if (name.find_first_not_of('.') != std::string::npos && name.find('\0') == std::string::npos) place /= name;
  }
  return place;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kMostFiles = 60;
  static const fs::path root = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
  const fs::path dump = root / ("msdbg-fuzz-" + std::to_string(::getpid()));
  std::error_code ignored;
  fs::create_directories(dump, ignored);
  fuzz::Input input(data, size);
  for (int files = 0; files < kMostFiles && !input.empty(); ++files) {
    const fs::path path = place(dump, input.chunk());
    const std::string_view content = input.chunk();
    fs::create_directories(path.parent_path(), ignored);
    std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  }
  if (const Result<std::unique_ptr<Session>> session = open_dump(dump); fuzz::good(session)) fuzz::walk(**session);
  fs::remove_all(dump, ignored);
  return 0;
}
