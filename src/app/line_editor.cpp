#include "app/line_editor.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "app/terminal_editor.h"
#include "msdbg/base.h"

namespace msdbg::app {
namespace {

class PlainEditor : public LineEditor {
 public:
  PlainEditor(bool show_prompt, News news) : show_prompt_(show_prompt), news_(std::move(news)) {
    // poll() would not see input that the C library has buffered.
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

  // False after Ctrl-C. Without descriptors, getline() does the waiting.
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

}  // namespace

std::string coloured_prompt(const std::string& prompt, std::string* last) {
  const size_t end = prompt.rfind(" > ");
  if (end == std::string::npos || prompt.starts_with(' ')) return prompt;
  const auto code = [](std::string_view numbers) {
    std::string out(1, kNoColumns);
    return out.append("\x1b[").append(numbers).append("m").append(1, kNoColumns);
  };
  const std::string text = prompt.substr(0, end), before = std::exchange(*last, text);
  const auto words = split(text, ' '), old = split(before, ' ');
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    // When words were added or removed, positions no longer show which of them changed.
    const bool changed = words.size() == old.size() && words[i] != old[i];
    if (i > 0) out += ' ';
    if (!words[i].empty()) out.append(code(changed ? "0;1;33" : "0;1")).append(words[i]);
  }
  return out + code("0") + prompt.substr(end);
}

std::unique_ptr<LineEditor> make_line_editor(bool plain, const std::string& history_file, Completer completer, News news) {
  const bool terminal = ::isatty(STDIN_FILENO) && ::isatty(STDOUT_FILENO);
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || *term == '\0' || std::strcmp(term, "dumb") == 0;
#ifdef MSDBG_HAVE_LIBEDIT
  if (terminal && !dumb && !plain) return make_terminal_editor(history_file, std::move(completer), std::move(news));
#else
  (void)history_file;
  (void)completer;
#endif
  return std::make_unique<PlainEditor>(terminal && !plain, std::move(news));
}

void use_locale() {
  if (std::setlocale(LC_CTYPE, "") == nullptr) std::setlocale(LC_CTYPE, "C.UTF-8");
}

namespace {

// The directory in `variable`, or `fallback` in the user's home; empty without either.
std::filesystem::path user_directory(const char* variable, const char* fallback) {
  const char* named = std::getenv(variable);
  if (named != nullptr && *named != '\0') return named;
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? std::filesystem::path(home) / fallback : std::filesystem::path();
}

}  // namespace

std::string default_history_file() {
  const auto base = user_directory("XDG_STATE_HOME", ".local/state");
  if (base.empty()) return "";
  std::error_code error;
  std::filesystem::create_directories(base / "msdbg", error);
  return error ? "" : (base / "msdbg/history").string();
}

std::string init_file() {
  const auto base = user_directory("XDG_CONFIG_HOME", ".config");
  std::error_code error;
  const auto file = base / "msdbg/init.lua";
  return !base.empty() && std::filesystem::is_regular_file(file, error) ? file.string() : "";
}

}  // namespace msdbg::app
