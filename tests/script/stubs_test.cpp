// The stubs for editors (scripts/meta) and docs/lua.md name exactly what exists.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "script/support.h"

namespace msdbg::testing {
namespace {

using Stubs = ScriptTest;

std::string read(const std::string& path) {
  std::ifstream file(std::string(MSDBG_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Every file of stubs behind one another.
std::string read_stubs() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(MSDBG_SOURCE_DIR) + "/scripts/meta")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string text;
  for (const auto& file : files) text += read("scripts/meta/" + file.filename().string());
  return text;
}

// Class name -> members, from `---@class msdbg.X`, `---@field name` and `function X:name`.
std::map<std::string, std::set<std::string>> parse_stubs(const std::string& text) {
  std::map<std::string, std::set<std::string>> classes;
  std::map<std::string, std::string> variables;
  std::string current;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, third;
    words >> first >> second >> third;
    if (first == "---@class")
      current = second;
    else if (first == "---@field")
      classes[current].insert(second.back() == '?' ? second.substr(0, second.size() - 1) : second);
    else if (first == "local" && third == "=")
      variables[second] = current;
    else if (first == "function") {
      const size_t separator = second.find_first_of(".:"), end = second.find('(');
      if (separator != std::string::npos)
        classes[variables[second.substr(0, separator)]].insert(second.substr(separator + 1, end - separator - 1));
    }
  }
  return classes;
}

// Members of a class as the virtual machine has them, one a line.
std::set<std::string> members(Script& script, const std::string& name) {
  const auto made =
      script.eval("names = {}; for _, list in ipairs { require('msdbg.core').members '" + name +
                  "' } do for n in pairs(list) do names[#names + 1] = n end end; return table.concat(names, '\\n')");
  std::set<std::string> out;
  std::istringstream lines(made.output);
  for (std::string line; std::getline(lines, line);) out.insert(line);
  return out;
}

TEST_F(Stubs, StubsAndBindingsAgree) {
  const auto stubs = parse_stubs(read_stubs());
  const std::pair<const char*, const char*> classes[] = {
      {"msdbg.Session", "session"},       {"msdbg.Node", "node"},        {"msdbg.NodeSet", "node set"},
      {"msdbg.Tensor", "tensor"},         {"msdbg.Watch", "watchpoint"}, {"msdbg.Result", "check result"},
      {"msdbg.RunResult", "run result"},  {"msdbg.Origins", "origin result"},
      {"msdbg.Report", "report"}};
  for (const auto& [stub, name] : classes) {
    ASSERT_TRUE(stubs.count(stub)) << stub;
    EXPECT_EQ(stubs.at(stub), members(*script, name)) << stub;
  }
}

TEST_F(Stubs, LibraryFunctionsAgree) {
  const auto stubs = parse_stubs(read_stubs());
  std::set<std::string> have;
  const std::string names =
      type("names = {}; for n in pairs(msdbg) do names[#names + 1] = n end; return table.concat(names, '\\n')");
  std::istringstream lines(names);
  for (std::string line; std::getline(lines, line);) have.insert(line);
  EXPECT_EQ(stubs.at("msdbg"), have);
}

// Modules written in Lua: what `require` gives.
TEST_F(Stubs, ModulesAgree) {
  const auto stubs = parse_stubs(read_stubs());
  for (const std::string name : {"table", "plot", "format", "dtype", "steps", "progress", "json", "options", "look", "test"}) {
    std::set<std::string> have;
    const auto made = script->eval("names = {}; for n in pairs(require 'msdbg." + name +
                                   "') do names[#names + 1] = n end; return table.concat(names, '\\n')");
    std::istringstream lines(made.output);
    for (std::string line; std::getline(lines, line);) have.insert(line);
    ASSERT_TRUE(stubs.count("msdbg." + name)) << name;
    EXPECT_EQ(stubs.at("msdbg." + name), have) << name;
  }
}

TEST_F(Stubs, StatisticsFieldsAgree) {
  const auto stubs = parse_stubs(read_stubs());
  for (const std::string& field : stubs.at("msdbg.Stats")) run("local _ = s:tensor('Log-op0').stats." + field);
  EXPECT_EQ(stubs.at("msdbg.Stats").size(), 16u);
}

TEST_F(Stubs, ReferencePageNamesEveryMember) {
  const std::string page = read("docs/lua.md") + read("docs/library.md");
  for (const auto& [name, fields] : parse_stubs(read_stubs())) {
    for (const std::string& field : fields) EXPECT_TRUE(page.find(field) != std::string::npos) << name << "." << field;
  }
}

}  // namespace
}  // namespace msdbg::testing
