#include "app/program.h"

#include <sys/prctl.h>

#include <cstdlib>
#include <system_error>

namespace msdbg::app {
namespace {

constexpr const char* kLauncher = "MSDBG_LAUNCHER";

ProgramFile find_program() {
  const char* launcher = std::getenv(kLauncher);
  if (launcher == nullptr) {
    std::error_code failed;
    return {"/proc/self/exe", std::filesystem::read_symlink("/proc/self/exe", failed).parent_path()};
  }
  ProgramFile out{launcher, std::filesystem::path(launcher).parent_path()};
  ::unsetenv(kLauncher);
  ::prctl(PR_SET_NAME, "msdbg");  // ps and pgrep would show the name of the loader
  return out;
}

}  // namespace

const ProgramFile& program_file() {
  static const ProgramFile file = find_program();
  return file;
}

}  // namespace msdbg::app
