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

/// Called when a watched descriptor is readable. Returns whole lines to show above the prompt, or "". May change the prompt.
using News = std::function<std::string(std::string* prompt)>;

class LineEditor {
 public:
  enum class Outcome { kLine, kEnd, kInterrupted };

  virtual ~LineEditor() = default;
  /// Reads one line without its newline. kInterrupted: Ctrl-C, the line is dropped.
  virtual Outcome read(const std::string& prompt, std::string* line) = 0;
  /// Also polls these descriptors while a line is read.
  virtual void watch(std::vector<int> descriptors) = 0;
  /// Shows the prompt in bold, with changes since the last one in another colour.
  virtual void set_colours(bool) {}
  /// Remembers an entry, which may have several lines.
  virtual void remember(const std::string& entry) = 0;
};

/// libedit on a terminal (history in `history_file` unless empty); otherwise, or with `plain`, plain reading.
std::unique_ptr<LineEditor> make_line_editor(bool plain, const std::string& history_file, Completer completer, News news = {});

/// The line editor counts columns in the user's encoding: that of the environment, or UTF-8 if this C library does not know the locale,
/// as in a bundle. Numbers keep the C locale's decimal point.
void use_locale();

/// $XDG_STATE_HOME/msdbg/history or ~/.local/state/msdbg/history; creates the directory. "" without a home directory.
std::string default_history_file();
/// $XDG_CONFIG_HOME/msdbg/init.lua or ~/.config/msdbg/init.lua; "" when there is no such file.
std::string init_file();

}  // namespace msdbg::app
