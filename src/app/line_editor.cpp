#include "app/line_editor.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <filesystem>

#include "msdbg/base.h"

#ifdef MSDBG_HAVE_LIBEDIT
#include <histedit.h>
#endif

namespace msdbg::app {
namespace {

// What poll() shall look at: the keyboard first.
std::vector<struct pollfd> poll_set(const std::vector<int>& descriptors) {
  std::vector<struct pollfd> out{{STDIN_FILENO, POLLIN, 0}};
  for (const int descriptor : descriptors) out.push_back({descriptor, POLLIN, 0});
  return out;
}
bool has_news(const std::vector<struct pollfd>& polled) {
  return std::any_of(polled.begin() + 1, polled.end(), [](const struct pollfd& p) { return p.revents != 0; });
}

class PlainEditor : public LineEditor {
 public:
  PlainEditor(bool show_prompt, News news) : show_prompt_(show_prompt), news_(std::move(news)) {
    // What the C library had read ahead, poll() would not see.
    std::setvbuf(stdin, nullptr, _IONBF, 0);
  }
  ~PlainEditor() override { std::free(buffer_); }
  PlainEditor(const PlainEditor&) = delete;
  PlainEditor& operator=(const PlainEditor&) = delete;

  Outcome read(const std::string& prompt, std::string* line) override {
    prompt_ = prompt;
    show_prompt();
    if (!wait_for_input()) return Outcome::kInterrupted;
    errno = 0;
    const ssize_t n = ::getline(&buffer_, &capacity_, stdin);
    if (n < 0) {
      if (errno != EINTR) return Outcome::kEnd;
      std::clearerr(stdin);
      return Outcome::kInterrupted;
    }
    line->assign(buffer_, static_cast<size_t>(n));
    while (!line->empty() && (line->back() == '\n' || line->back() == '\r')) line->pop_back();
    return Outcome::kLine;
  }
  void watch(std::vector<int> descriptors) override { descriptors_ = std::move(descriptors); }
  void remember(const std::string&) override {}

 private:
  void show_prompt() {
    if (!show_prompt_) return;
    std::fputs(prompt_.c_str(), stdout);
    std::fflush(stdout);
  }

  // False after Ctrl-C. Without descriptors getline() waits by itself.
  bool wait_for_input() {
    while (!descriptors_.empty() && news_) {
      auto polled = poll_set(descriptors_);
      if (::poll(polled.data(), polled.size(), -1) < 0) {
        if (errno != EINTR) return true;
        if (interrupt_requested()) return false;
        continue;
      }
      if (has_news(polled)) {
        const std::string text = news_(&prompt_);
        FILE* to = show_prompt_ ? stdout : stderr;
        if (!text.empty()) {
          std::fprintf(to, "%s%s", show_prompt_ ? "\n" : "", text.c_str());
          std::fflush(to);
          show_prompt();
        }
      }
      if (polled[0].revents != 0) return true;
    }
    return true;
  }

  bool show_prompt_;
  News news_;
  std::string prompt_;
  std::vector<int> descriptors_;
  char* buffer_ = nullptr;
  size_t capacity_ = 0;
};

#ifdef MSDBG_HAVE_LIBEDIT

constexpr int kHistoryEntries = 5000;

size_t word_begin(const std::string& line, size_t cursor) {
  // What ends a word at this prompt; names keep their slashes, dashes, dots and colons.
  constexpr const char* kBreaks = " \t\"'`()[]{},=<>+*;";
  const size_t found = cursor == 0 ? std::string::npos : line.find_last_of(kBreaks, cursor - 1);
  return found == std::string::npos ? 0 : found + 1;
}

class TerminalEditor : public LineEditor {
 public:
  TerminalEditor(std::string history_file, Completer completer, News news)
      : history_file_(std::move(history_file)), completer_(std::move(completer)), news_(std::move(news)) {
    editor_ = ::el_init("msdbg", stdin, stdout, stderr);
    history_ = ::history_init();
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, kHistoryEntries);
    ::history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) ::history(history_, &event, H_LOAD, history_file_.c_str());
    ::el_set(editor_, EL_CLIENTDATA, this);
    ::el_set(editor_, EL_PROMPT, &TerminalEditor::prompt_of);
    ::el_set(editor_, EL_EDITOR, "emacs");
    ::el_set(editor_, EL_HIST, ::history, history_);
    ::el_set(editor_, EL_SIGNAL, 0);
    ::el_set(editor_, EL_GETCFN, &TerminalEditor::read_char);
    ::el_set(editor_, EL_ADDFN, "msdbg-complete", "complete the word", &TerminalEditor::complete);
    ::el_set(editor_, EL_BIND, "^I", "msdbg-complete", nullptr);
    ::el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    // The user's ~/.editrc has the last word.
    ::el_source(editor_, nullptr);
  }
  ~TerminalEditor() override {
    if (!history_file_.empty()) {
      HistEvent event;
      ::history(history_, &event, H_SAVE, history_file_.c_str());
    }
    ::history_end(history_);
    ::el_end(editor_);
  }
  TerminalEditor(const TerminalEditor&) = delete;
  TerminalEditor& operator=(const TerminalEditor&) = delete;

  Outcome read(const std::string& prompt, std::string* line) override {
    prompt_ = prompt;
    int length = 0;
    // libedit prints the prompt first and leaves line mode only at the first key. What is typed in between would be
    // echoed and edited by the kernel, and Ctrl-D would be lost.
    ::el_set(editor_, EL_PREP_TERM, 1);
    const char* text = ::el_gets(editor_, &length);
    if (interrupt_requested()) {
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

  void watch(std::vector<int> descriptors) override { descriptors_ = std::move(descriptors); }

  void remember(const std::string& entry) override {
    if (trim(entry).empty()) return;
    HistEvent event;
    ::history(history_, &event, H_ENTER, entry.c_str());
  }

 private:
  static TerminalEditor* self(EditLine* editor) {
    void* data = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<TerminalEditor*>(data);
  }
  static char* prompt_of(EditLine* editor) { return self(editor)->prompt_.data(); }

  // One character of the terminal. Ctrl-C is blocked except while poll() sleeps, so that it cannot slip in between the
  // look at the flag and the sleep; any other signal (a resize, a timer) goes on waiting.
  static int read_char(EditLine* editor, wchar_t* character) {
    std::mbstate_t state = {};
    for (;;) {
      if (!self(editor)->wait_for_key()) return -1;
      char byte = 0;
      const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n <= 0) return n == 0 ? 0 : -1;
      switch (std::mbrtowc(character, &byte, 1, &state)) {
        case static_cast<size_t>(-2): continue;  // more bytes of this character to come
        case static_cast<size_t>(-1): state = {}; continue;  // no character: dropped
        default: return 1;
      }
    }
  }

  bool wait_for_key() {
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    bool ready = false;
    while (!ready && !interrupt_requested()) {
      auto polled = poll_set(descriptors_);
      const int n = ::ppoll(polled.data(), polled.size(), nullptr, &before);
      if (n < 0 && errno != EINTR) break;
      if (n > 0 && has_news(polled) && news_) show_news();
      ready = n > 0 && polled[0].revents != 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return ready;
  }

  // Wipes prompt and line, which may take several rows, and draws them again below the news.
  void show_news() {
    const size_t row = (columns(prompt_) + columns_before_cursor()) / terminal_columns();
    const std::string before = prompt_;
    const std::string text = news_(&prompt_);
    if (text.empty() && prompt_ == before) return;
    if (row > 0) std::printf("\033[%zuA", row);
    std::printf("\r\033[J%s", text.c_str());
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
    const bool extends = common.size() > word.size() || (candidates.size() == 1 && common != word);
    if (extends || candidates.size() == 1) {
      ::el_deletestr(editor, static_cast<int>(word.size()));
      std::string insert = candidates.size() == 1 ? candidates.front() : common;
      const char last = insert.empty() ? '\0' : insert.back();
      if (candidates.size() == 1 && last != '/' && last != '.' && last != ':' && last != '(') insert += ' ';
      return ::el_insertstr(editor, insert.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    }
    me->list(candidates);
    return CC_REDISPLAY;
  }

  void list(const std::vector<std::string>& candidates) {
    constexpr size_t kShown = 60;
    std::fputc('\n', stdout);
    for (size_t i = 0; i < std::min(candidates.size(), kShown); ++i) std::printf("  %s\n", printable(candidates[i]).c_str());
    if (candidates.size() > kShown) std::printf("  ... and %zu more\n", candidates.size() - kShown);
  }

  std::string history_file_, prompt_;
  Completer completer_;
  News news_;
  std::vector<int> descriptors_;
  EditLine* editor_;
  History* history_;
};

#endif

}  // namespace

std::unique_ptr<LineEditor> make_line_editor(bool plain, const std::string& history_file, Completer completer, News news) {
  const bool terminal = ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO);
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || *term == '\0' || std::strcmp(term, "dumb") == 0;
#ifdef MSDBG_HAVE_LIBEDIT
  if (terminal && !dumb && !plain) return std::make_unique<TerminalEditor>(history_file, std::move(completer), std::move(news));
#else
  (void)history_file;
  (void)completer;
#endif
  return std::make_unique<PlainEditor>(terminal && !plain, std::move(news));
}

std::string default_history_file() {
  std::filesystem::path base;
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  if (state != nullptr && *state != '\0') base = state;
  else if (home != nullptr && *home != '\0') base = std::filesystem::path(home) / ".local/state";
  else return "";
  std::error_code error;
  std::filesystem::create_directories(base / "msdbg", error);
  return error ? "" : (base / "msdbg/history").string();
}

}  // namespace msdbg::app
