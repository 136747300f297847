// Reads the lines of the prompt: with editing, history and completion on a terminal, plainly from a pipe.
//
// One editor per process, on the thread that owns the Script.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace msdbg::app {

/// Candidates for the word that ends at the cursor, and where that word begins.
using Completer = std::function<std::vector<std::string>(const std::string& line, size_t cursor)>;

/// Called when a watched descriptor is readable: what to show above the line, whole lines or "". May change the prompt.
using News = std::function<std::string(std::string* prompt)>;

class LineEditor {
 public:
  enum class Outcome { kLine, kEnd, kInterrupted };

  virtual ~LineEditor() = default;
  /// One line without its newline. kInterrupted: Ctrl-C, the line is dropped.
  virtual Outcome read(const std::string& prompt, std::string* line) = 0;
  /// While a line is read, these descriptors are polled, too.
  virtual void watch(std::vector<int> descriptors) = 0;
  /// The prompt in bold, with what has changed since the last one in another colour.
  virtual void set_colours(bool) {}
  /// Remembers an entry, several lines included.
  virtual void remember(const std::string& entry) = 0;
};

/// libedit on a terminal (history in `history_file` unless empty), plain reading otherwise or with `plain`.
std::unique_ptr<LineEditor> make_line_editor(bool plain, const std::string& history_file, Completer completer, News news = {});

/// $XDG_STATE_HOME/msdbg/history or ~/.local/state/msdbg/history; the directory is created. "" without a home directory.
std::string default_history_file();
/// $XDG_CONFIG_HOME/msdbg/init.lua or ~/.config/msdbg/init.lua; "" when there is no such file.
std::string init_file();

}  // namespace msdbg::app
