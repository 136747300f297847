#include "app/pager.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "msdbg/base.h"
#include "msdbg/child.h"

namespace msdbg::app {
namespace {

// The shell's exit statuses for a program that it cannot start.
constexpr int kNotExecutable = 126, kNotFound = 127;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string chosen_pager() {
  for (const char* name : {"MSDBG_PAGER", "PAGER"}) {
    if (std::getenv(name) != nullptr) return std::string(trim(variable(name)));
  }
  return "less";
}

// Rows on a terminal of `columns` columns; colour codes take no space.
size_t rows_of(std::string_view text, size_t columns) {
  size_t rows = 0;
  for (const std::string_view line : split(text, '\n')) {
    size_t width = 0;
    bool code = false;
    for (const char c : line) {
      if (c == '\x1b') code = true;
      else if (code) code = c != 'm';
      else if ((c & 0xC0) != 0x80) ++width;
    }
    rows += width <= columns ? 1 : (width + columns - 1) / columns;
  }
  return rows;
}

bool fits(std::string_view text) {
  struct winsize size = {};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return true;
  // The last newline is not a row; the prompt occupies one.
  if (text.ends_with('\n')) text.remove_suffix(1);
  return rows_of(text, size.ws_col) < size.ws_row;
}

Result<int> run_pager(const std::string& pager, std::string_view text) {
  if (pager.find_first_of(" \t\n\"'\\$`|&;<>()*?[#~=%") != std::string::npos) return feed_shell(pager, text);
  if (pager == "less" || pager.ends_with("/less")) {
    // -F exits at once when everything fits, -R passes colours through, -X keeps the text on the screen afterwards.
    return feed_program({pager, variable("LESS").empty() ? "-FRX" : "-R"}, text);
  }
  return feed_program({pager}, text);
}

}  // namespace

bool page(std::string_view text) {
  const std::string pager = chosen_pager(), terminal = variable("TERM");
  if (pager.empty() || pager == "cat" || terminal.empty() || terminal == "dumb" || fits(text)) return false;
  std::fflush(stdout);
  const Result<int> ended = run_pager(pager, text);
  return ended && *ended != kNotFound && *ended != kNotExecutable;
}

}  // namespace msdbg::app
