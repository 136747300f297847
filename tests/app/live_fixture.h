// `msdbg listen` and the training that connects to it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/process.h"

namespace msdbg::testing {

/// A folder for one test's files, removed with it.
class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "msdbg-live-XXXXXX";
    path_ = ::mkdtemp(name.data()) != nullptr ? name : "";
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

/// The port after `MS_DEBUGGER_PORT=` in the output of msdbg, or "".
inline std::string port_in(const std::string& text) {
  const std::string name = "MS_DEBUGGER_PORT=";
  const size_t at = text.rfind(name);
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size();
  return text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
}

inline std::unique_ptr<test::Process> start_training(const std::string& port, std::vector<std::string> more) {
  std::vector<std::string> words{MSDBG_TRAINER, "--host", "127.0.0.1", "--port", port, "--retry-unit-ms", "50"};
  words.insert(words.end(), more.begin(), more.end());
  return std::make_unique<test::Process>(words);
}

}  // namespace msdbg::testing
