// README.md and docs/*.md: every link has a target, and the commands shown on the sample dumps print what the page shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path kRoot = MSDBG_ROOT;

std::vector<fs::path> pages() {
  std::vector<fs::path> found = {kRoot / "README.md"};
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    lines.push_back(line);
  }
  return lines;
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The anchor that GitHub gives a heading.
std::string anchor(const std::string& heading) {
  std::string made;
  for (const char c : heading) {
    if (c == ' ') made += '-';
    else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') made += static_cast<char>(std::tolower(c));
  }
  return made;
}

struct Page {
  std::set<std::string> anchors;
  std::vector<std::string> links;
};

Page read_page(const fs::path& path) {
  static const std::regex code("`[^`]*`"), link(R"(\]\(([^)\s]+)\))"), heading("^#+ (.*)$");
  Page page;
  bool fenced = false;
  for (const std::string& line : lines_of(read(path))) {
    if (line.rfind("```", 0) == 0) fenced = !fenced;
    if (fenced) continue;
    std::smatch match;
    if (std::regex_match(line, match, heading)) page.anchors.insert(anchor(match[1]));
    const std::string prose = std::regex_replace(line, code, "");
    for (std::sregex_iterator at(prose.begin(), prose.end(), link), end; at != end; ++at) page.links.push_back((*at)[1]);
  }
  return page;
}

TEST(Docs, EveryLinkLeadsSomewhere) {
  std::map<fs::path, Page> all;
  for (const fs::path& path : pages()) all[path] = read_page(path);
  size_t links = 0;
  for (const auto& [path, page] : all) {
    for (const std::string& link : page.links) {
      if (link.find("://") != std::string::npos) continue;
      ++links;
      const size_t hash = link.find('#');
      const fs::path target = hash == 0 ? path : (path.parent_path() / link.substr(0, hash)).lexically_normal();
      EXPECT_TRUE(fs::exists(target)) << path << ": " << link;
      if (hash != std::string::npos && all.count(target) != 0) {
        EXPECT_EQ(all[target].anchors.count(link.substr(hash + 1)), 1u) << path << ": " << link << ": no such heading";
      }
    }
  }
  EXPECT_GT(links, 50u);
}

struct Shown {
  std::string command;
  std::vector<std::string> output;
};

/// The commands of a page with their output. Lua code after "as `NAME.lua`" is written to NAME.lua in the current directory.
std::vector<Shown> commands_of(const fs::path& path) {
  static const std::regex named(R"(as `([\w-]+\.lua)`)");
  std::vector<Shown> shown;
  bool fenced = false, listening = false;
  std::string name;
  std::ofstream script;
  for (std::string line : lines_of(read(path))) {
    std::smatch match;
    const bool indented = !fenced && line.rfind("    ", 0) == 0;
    if (indented) line.erase(0, 4);
    if (line.rfind("```", 0) == 0) {
      fenced = !fenced;
      listening = false;
      script.close();
      if (line == "```lua" && !name.empty()) script.open(name);
      if (fenced) name.clear();
    } else if ((fenced || indented) && line.rfind("$ ", 0) == 0) {
      listening = true;
      shown.push_back({line.substr(2, line.find("  #") - 2), {}});
    } else if (fenced || indented) {
      if (listening) shown.back().output.push_back(line);
      if (script.is_open()) script << line << "\n";
    } else {
      listening = false;
      if (std::regex_search(line, match, named)) name = match[1];
    }
  }
  return shown;
}

/// Whether it runs msdbg on existing sample dumps or scripts. Others show the reader's own dump or training.
bool can_run(const std::string& command) {
  if (command.rfind("msdbg ", 0) != 0 || command.rfind("msdbg listen", 0) == 0) return false;
  std::istringstream words(command);
  size_t files = 0;
  for (std::string word; words >> word;) {
    const bool is_file = word.rfind("dumps/", 0) == 0 || (word.size() > 4 && word.ends_with(".lua"));
    if (is_file && !fs::exists(word)) return false;
    files += is_file ? 1 : 0;
  }
  return files > 0;
}

std::string run(std::string command) {
  command.replace(0, 5, MSDBG_PROGRAM);
  FILE* pipe = ::popen(("{ " + command + "; } 2>&1 < /dev/null").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen failed");
  std::string output;
  char block[4096];
  for (size_t n; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) output.append(block, n);
  ::pclose(pipe);
  return output;
}

/// The same line, or one in which `...` matches what the page omits.
bool prints(const std::vector<std::string>& output, const std::string& line) {
  if (std::find(output.begin(), output.end(), line) != output.end()) return true;
  if (line.find("...") == std::string::npos) return false;
  return std::any_of(output.begin(), output.end(), [&](const std::string& printed) {
    size_t from = 0, at = 0;
    for (size_t next = line.find("..."); from <= line.size(); next = line.find("...", from)) {
      const std::string piece = line.substr(from, next == std::string::npos ? next : next - from);
      const size_t found = printed.find(piece, at);
      if (found == std::string::npos || (from == 0 && found != 0)) return false;
      at = found + piece.size();
      if (next == std::string::npos) return true;
      from = next + 3;
    }
    return true;
  });
}

TEST(Docs, CommandsPrintWhatThePagesShow) {
  ::setenv("MSDBG_SIMD", "scalar", 1);  // targets differ in the last digit of a sum
  ::setenv("MSDBG_WIDTH", "100", 1);    // as on a reader's terminal
  std::string folder = (fs::temp_directory_path() / "msdbg-docs-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (const auto& entry : fs::directory_iterator(MSDBG_TEST_DATA)) {
    fs::create_symlink(entry.path(), fs::path(folder) / entry.path().filename());
  }
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  size_t commands = 0;
  for (const fs::path& path : pages()) {
    for (const Shown& shown : commands_of(path)) {
      if (!can_run(shown.command)) continue;
      ++commands;
      const std::string text = run(shown.command);
      const auto output = lines_of(text);
      for (const std::string& line : shown.output) {
        if (line.empty() || line == "...") continue;
        EXPECT_TRUE(prints(output, line)) << path << "\n$ " << shown.command << "\ndoes not print\n" << line << "\nbut\n" << text;
      }
    }
  }
  EXPECT_GE(commands, 20u);
  fs::current_path(before);
  fs::remove_all(folder);
}

}  // namespace
