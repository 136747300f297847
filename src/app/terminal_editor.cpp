#include "app/terminal_editor.h"

#ifndef MSDBG_HAVE_LIBEDIT

namespace msdbg::app {
std::unique_ptr<LineEditor> make_terminal_editor(const std::string&, Completer, News) { return nullptr; }
}  // namespace msdbg::app

#else

#include <fcntl.h>
#include <histedit.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cwchar>

#include "msdbg/base.h"

namespace msdbg::app {
namespace {

constexpr int kHistoryEntries = 5000;
constexpr std::string_view kPasteEnd = "\033[201~";

volatile std::sig_atomic_t g_resized = 0;
void on_resize(int) { g_resized = 1; }

// With Ctrl-C the kernel drops what was typed before. A read for which that was ready must not wait then: the interrupt is over. Our own
// description of the terminal can be told so, unlike that of other programs.
int open_keys() {
  const char* const name = ::ttyname(STDIN_FILENO);
  const int keys = name == nullptr ? -1 : ::open(name, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  return keys >= 0 ? keys : STDIN_FILENO;
}

size_t word_begin(const std::string& line, size_t cursor) {
  // The characters that end a word at this prompt; names keep their slashes, dashes, dots and colons.
  constexpr const char* kBreaks = " \t\"'`()[]{},=<>+*;";
  const size_t found = cursor == 0 ? std::string::npos : line.find_last_of(kBreaks, cursor - 1);
  return found == std::string::npos ? 0 : found + 1;
}

class TerminalEditor : public LineEditor {
 public:
  TerminalEditor(const std::string& history_file, Completer completer, News news)
      : history_file_(history_file), completer_(std::move(completer)), news_(std::move(news)) {
    struct sigaction action = {};
    action.sa_handler = on_resize;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGWINCH, &action, &resize_before_);
    editor_ = ::el_init("msdbg", stdin, stdout, stderr);
    load_history();
    ::el_set(editor_, EL_CLIENTDATA, this);
    ::el_set(editor_, EL_PROMPT_ESC, &TerminalEditor::prompt_of, kNoColumns);
    ::el_set(editor_, EL_EDITOR, "emacs");
    ::el_set(editor_, EL_HIST, ::history, history_);
    ::el_set(editor_, EL_SIGNAL, 0);
    ::el_set(editor_, EL_GETCFN, &TerminalEditor::read_char);
    ::el_set(editor_, EL_ADDFN, "msdbg-complete", "complete the word", &TerminalEditor::complete);
    ::el_set(editor_, EL_ADDFN, "msdbg-paste", "take a pasted block", &TerminalEditor::paste);
    ::el_set(editor_, EL_BIND, "^I", "msdbg-complete", nullptr);
    ::el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    ::el_set(editor_, EL_BIND, "\\e[200~", "msdbg-paste", nullptr);
    // The user's ~/.editrc overrides these settings.
    ::el_source(editor_, nullptr);
  }
  ~TerminalEditor() override {
    ::history_end(history_);
    ::el_end(editor_);
    ::sigaction(SIGWINCH, &resize_before_, nullptr);
    if (keys_ != STDIN_FILENO) ::close(keys_);
  }
  TerminalEditor(const TerminalEditor&) = delete;
  TerminalEditor& operator=(const TerminalEditor&) = delete;

  Outcome read(const std::string& prompt, std::string* line) override {
    set_prompt(prompt);
    int length = 0;
    if (g_resized != 0) resize();
    // libedit prints the prompt first and leaves line mode only at the first key. Anything typed in between would be echoed and
    // edited by the kernel, and Ctrl-D would be lost.
    ::el_set(editor_, EL_PREP_TERM, 1);
    mark_pastes(true);
    const char* text = ::el_gets(editor_, &length);
    mark_pastes(false);
    if (interrupt_requested()) {
      pasted_.clear();
      move_past_line();
      ::el_reset(editor_);
      std::fputs("^C\n", stdout);
      return Outcome::kInterrupted;
    }
    if (text == nullptr || length <= 0) {
      std::fputc('\n', stdout);
      return Outcome::kEnd;
    }
    line->assign(text, static_cast<size_t>(length));
    while (!line->empty() && line->back() == '\n') line->pop_back();
    return Outcome::kLine;
  }

  void set_colours(bool on) override { colours_ = on; }
  void watch(std::vector<int> descriptors) override { descriptors_ = std::move(descriptors); }

  void remember(const std::string& entry) override {
    if (trim(entry).empty()) return;
    HistEvent event;
    ::history(history_, &event, H_ENTER, entry.c_str());
    history_file_.append(entry);
  }

 private:
  void load_history() {
    history_ = ::history_init();
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, kHistoryEntries);
    ::history(history_, &event, H_SETUNIQUE, 1);
    const std::string& path = history_file_.path();
    if (path.empty()) return;
    ::history(history_, &event, H_LOAD, path.c_str());
    if (history_file_.is_long(2 * kHistoryEntries)) ::history(history_, &event, H_SAVE, path.c_str());
  }

  static TerminalEditor* self(EditLine* editor) {
    void* data = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<TerminalEditor*>(data);
  }
  static char* prompt_of(EditLine* editor) { return self(editor)->shown_prompt_.data(); }

  void set_prompt(const std::string& prompt) {
    prompt_ = prompt;
    shown_prompt_ = colours_ ? coloured_prompt(prompt, &last_prompt_) : prompt;
  }

  // Terminals with bracketed paste mark what is pasted; others ignore this.
  static void mark_pastes(bool on) {
    std::fputs(on ? "\033[?2004h" : "\033[?2004l", stdout);
    std::fflush(stdout);
  }

  // Reads one character of the terminal; a pasted block comes first.
  static int read_char(EditLine* editor, wchar_t* character) {
    TerminalEditor* me = self(editor);
    std::mbstate_t state = {};
    for (;;) {
      char byte = 0;
      if (!me->pasted_.empty()) {
        byte = me->pasted_.front();
        me->pasted_.erase(0, 1);
      } else if (const int n = me->read_byte(&byte); n <= 0) {
        return n;
      }
      switch (std::mbrtowc(character, &byte, 1, &state)) {
        case static_cast<size_t>(-2): continue;  // more bytes of this character to come
        case static_cast<size_t>(-1): state = {}; continue;  // no character: dropped
        default: return 1;
      }
    }
  }

  // Returns 1, 0 at the end of the input, or -1 after Ctrl-C.
  int read_byte(char* byte) {
    for (;;) {
      if (!wait_for_key()) return -1;
      const ssize_t n = ::read(keys_, byte, 1);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      return n > 0 ? 1 : static_cast<int>(n);
    }
  }

  // Reads the whole block while the terminal is in raw mode: between two entries it is not, and the kernel would cut long lines.
  // The lines are then entered as if typed, with tabs as blanks instead of completion.
  static unsigned char paste(EditLine* editor, int) {
    TerminalEditor* me = self(editor);
    std::string block;
    char byte = 0;
    while (!block.ends_with(kPasteEnd)) {
      if (me->read_byte(&byte) <= 0) return CC_EOF;
      block += byte;
    }
    block.resize(block.size() - kPasteEnd.size());
    for (const char c : block) {
      if (c == '\r') me->pasted_ += '\n';
      else if (c == '\t') me->pasted_ += ' ';
      else if (static_cast<unsigned char>(c) >= ' ' || c == '\n') me->pasted_ += c;
    }
    return CC_NORM;
  }

  // Ctrl-C and a resize are blocked except while poll() sleeps: they cannot arrive between the test of their flag and the sleep.
  // After any other signal (a timer) the wait continues.
  bool wait_for_key() {
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGWINCH);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    bool ready = false;
    while (!ready && !interrupt_requested()) {
      auto polled = poll_set(descriptors_);
      const int n = ::ppoll(polled.data(), polled.size(), nullptr, &before);
      if (n < 0 && errno != EINTR) break;
      if (g_resized != 0) {
        wipe();
        resize();
        ::el_set(editor_, EL_REFRESH);
      }
      if (n > 0 && has_news(polled) && news_) show_news();
      ready = n > 0 && polled[0].revents != 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return ready;
  }

  void resize() {
    g_resized = 0;
    ::el_resize(editor_);
  }

  // Moves to the start of the prompt, which may be several rows up, and clears from there.
  void wipe() {
    const size_t row = (columns(prompt_) + columns_before_cursor()) / terminal_columns();
    if (row > 0) std::printf("\033[%zuA", row);
    std::fputs("\r\033[J", stdout);
    std::fflush(stdout);
  }

  // Moves to the end of the line; later output starts below it.
  void move_past_line() {
    const LineInfo* info = ::el_line(editor_);
    const size_t across = terminal_columns(), begin = columns(prompt_) + columns_before_cursor();
    const size_t end = begin + columns({info->cursor, static_cast<size_t>(info->lastchar - info->cursor)});
    if (end / across > begin / across) std::printf("\033[%zuB", end / across - begin / across);
    std::printf("\033[%zuG", end % across + 1);
  }

  // Prints news above the prompt and the line, and redraws both below.
  void show_news() {
    const std::string old_prompt = prompt_;
    std::string new_prompt = prompt_;
    const std::string text = news_(&new_prompt);
    if (text.empty() && new_prompt == old_prompt) return;
    wipe();
    set_prompt(new_prompt);
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    ::el_set(editor_, EL_REFRESH);
  }

  static size_t columns(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  }
  size_t columns_before_cursor() const {
    const LineInfo* info = ::el_line(editor_);
    return columns({info->buffer, static_cast<size_t>(info->cursor - info->buffer)});
  }
  static size_t terminal_columns() {
    struct winsize size = {};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }

  static unsigned char complete(EditLine* editor, int) {
    TerminalEditor* me = self(editor);
    const LineInfo* info = ::el_line(editor);
    const std::string line(info->buffer, static_cast<size_t>(info->lastchar - info->buffer));
    const size_t cursor = static_cast<size_t>(info->cursor - info->buffer);
    const std::vector<std::string> candidates = me->completer_(line, cursor);
    if (candidates.empty()) return CC_REFRESH_BEEP;
    const std::string word = line.substr(word_begin(line, cursor), cursor - word_begin(line, cursor));

    std::string common = candidates.front();
    for (const std::string& candidate : candidates) {
      size_t i = 0;
      while (i < common.size() && i < candidate.size() && common[i] == candidate[i]) ++i;
      common.resize(i);
    }
    if (common.size() > word.size() || candidates.size() == 1) {
      ::el_deletestr(editor, static_cast<int>(columns(word)));
      std::string insert = common;
      if (candidates.size() == 1 && std::string_view("/.:(=").find(common.back()) == std::string_view::npos) insert += ' ';
      return ::el_insertstr(editor, insert.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    }
    list(candidates, common);
    return CC_REDISPLAY;
  }

  // Lists candidates in columns, without their common prefix up to the last separator.
  static void list(const std::vector<std::string>& candidates, const std::string& common) {
    constexpr size_t kShown = 120;
    const size_t separator = common.find_last_of("/.:");
    const size_t skip = separator == std::string::npos ? 0 : separator + 1;
    std::vector<std::string> names;
    size_t width = 0;
    for (size_t i = 0; i < std::min(candidates.size(), kShown); ++i) {
      names.push_back(printable(candidates[i].size() > skip ? candidates[i].substr(skip) : candidates[i]));
      width = std::max(width, columns(names.back()) + 2);
    }
    const size_t across = std::max<size_t>(1, (terminal_columns() - 1) / width);
    const size_t rows = (names.size() + across - 1) / across;
    std::fputc('\n', stdout);
    for (size_t row = 0; row < rows; ++row) {
      std::string text;
      for (size_t i = row; i < names.size(); i += rows) {
        text += names[i];
        if (i + rows < names.size()) text.append(width - columns(names[i]), ' ');
      }
      std::printf("%s\n", text.c_str());
    }
    if (candidates.size() > kShown) std::printf("... and %zu more\n", candidates.size() - kShown);
  }

  HistoryFile history_file_;
  std::string prompt_, shown_prompt_, last_prompt_, pasted_;
  bool colours_ = false;
  Completer completer_;
  News news_;
  std::vector<int> descriptors_;
  const int keys_ = open_keys();
  struct sigaction resize_before_ = {};
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineEditor> make_terminal_editor(const std::string& history_file, Completer completer, News news) {
  return std::make_unique<TerminalEditor>(history_file, std::move(completer), std::move(news));
}

}  // namespace msdbg::app

#endif
