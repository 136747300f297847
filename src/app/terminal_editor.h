// Line editing with libedit. Only line_editor.cpp includes this.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "app/line_editor.h"

namespace msdbg::app {

/// The descriptors to poll: the keyboard first.
inline std::vector<struct pollfd> poll_set(const std::vector<int>& descriptors) {
  std::vector<struct pollfd> out{{STDIN_FILENO, POLLIN, 0}};
  for (const int descriptor : descriptors) out.push_back({descriptor, POLLIN, 0});
  return out;
}
inline bool has_news(const std::vector<struct pollfd>& polled) {
  return std::any_of(polled.begin() + 1, polled.end(), [](const struct pollfd& p) { return p.revents != 0; });
}

/// Marks the beginning and end of characters in the prompt that take no columns.
inline constexpr char kNoColumns = '\1';
/// The prompt up to its `>` in bold, with the words that differ from `*last` in yellow; stores this prompt in `*last`. The
/// continuation prompt stays as it is.
std::string coloured_prompt(const std::string& prompt, std::string* last);

/// Null when the program was built without libedit.
std::unique_ptr<LineEditor> make_terminal_editor(const std::string& history_file, Completer completer, News news);

/// Keeps entries across sessions, one per line in libedit's own format. Each is appended as it is entered: several prompts at once,
/// or one that is killed, lose nothing.
class HistoryFile {
 public:
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  void append(const std::string& entry);
  /// Whether there are more lines than are worth loading.
  bool is_long(size_t lines) const;

 private:
  std::string path_, last_;
};

}  // namespace msdbg::app
