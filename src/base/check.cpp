#include <fmt/format.h>

#include "msdbg/base.h"

namespace msdbg {

void check_failed(const char* condition, const std::source_location& where) {
  // Compilers are given full paths; the path from src/ or include/ is enough and the same on every machine.
  std::string_view file = where.file_name();
  for (std::string_view root : {"/src/", "/include/", "/tests/"}) {
    if (const size_t at = file.rfind(root); at != std::string_view::npos) {
      file.remove_prefix(at + root.size());
      break;
    }
  }
  throw InternalError(
      fmt::format("internal error: {} does not hold ({}:{}): please report it", condition, file, where.line()));
}

}  // namespace msdbg
