#include <fcntl.h>
#include <sys/stat.h>

#include <cctype>
#include <cstdio>
#include <fstream>

#include "app/terminal_editor.h"

namespace msdbg::app {

void HistoryFile::append(const std::string& entry) {
  if (path_.empty() || entry == last_) return;
  last_ = entry;
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;  // a read-only home directory does not deserve a message for every line
  struct stat status = {};
  std::string text = ::fstat(file, &status) == 0 && status.st_size == 0 ? "_HiStOrY_V2_\n" : "";
  for (const char c : entry) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isgraph(byte) != 0 && byte < 0x80 && c != '\\') {
      text += c;
      continue;
    }
    char octal[8];
    std::snprintf(octal, sizeof octal, "\\%03o", byte);
    text += octal;
  }
  text += '\n';
  // A single write keeps the lines of two prompts apart.
  [[maybe_unused]] const ssize_t written = ::write(file, text.data(), text.size());
  ::close(file);
}

bool HistoryFile::is_long(size_t lines) const {
  std::ifstream file(path_);
  size_t count = 0;
  for (std::string line; count <= lines && std::getline(file, line);) ++count;
  return count > lines;
}

}  // namespace msdbg::app
