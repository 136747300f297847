// A listening msdbg with a script, and the training program that connects to it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/process.h"

namespace msdbg::test {

using Words = std::vector<std::string>;

inline Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Starts `msdbg listen` and then the trainer with the port that it chose. With `--release` the trainer behaves like that release.
class LivePair {
 public:
  LivePair(const std::string& script, const Words& script_arguments, const Words& trainer_arguments)
      : listen_(joined({MSDBG_PROGRAM, "listen", "--port", "0", "--script", script, "--"}, script_arguments)) {
    const std::string mark = "listening on 127.0.0.1:";
    const auto line = listen_.wait_for(mark);
    if (!line) {
      ADD_FAILURE() << "no line '" << mark << "' in:\n" << listen_.output();
      return;
    }
    port_ = line->substr(line->find(mark) + mark.size());
    port_ = port_.substr(0, port_.find_first_not_of("0123456789"));
    const bool other = std::find(trainer_arguments.begin(), trainer_arguments.end(), "--release") != trainer_arguments.end();
    trainer_.emplace(joined({other ? MSDBG_RELEASE_TRAINER : MSDBG_TRAINER, "--port", port_}, trainer_arguments));
  }

  /// Waits for both; false with a failure if one does not end.
  bool finish() {
    if (!trainer_) return false;
    const auto listen_status = listen_.wait();
    const auto trainer_status = trainer_->wait();
    EXPECT_TRUE(listen_status) << "msdbg did not end:\n" << listen_.output();
    EXPECT_TRUE(trainer_status) << "the training did not end:\n" << trainer_->output();
    script_status = listen_status.value_or(-1);
    training_status = trainer_status.value_or(-1);
    script_text = listen_.output();
    training_text = trainer_->output();
    return listen_status && trainer_status;
  }

  const std::string& port() const { return port_; }
  Process& listen() { return listen_; }
  Process& trainer() { return *trainer_; }

  int script_status = -1, training_status = -1;
  std::string script_text, training_text;

 private:
  Process listen_;
  std::string port_;
  std::optional<Process> trainer_;
};

/// A directory that is empty at first and removed at the end.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "msdbg-live-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  Words names() const {
    Words found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  std::string path_;
};

inline std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace msdbg::test
