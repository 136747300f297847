// The stubs for editors (scripts/meta) name exactly what exists; docs/reference.md is generated from them, and docs/lua.md names
// them.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "script/support.h"

namespace msdbg::testing {
namespace {

namespace fs = std::filesystem;

using Stubs = ScriptTest;

std::string read(const fs::path& path) {
  std::ifstream file(fs::path(MSDBG_SOURCE_DIR) / path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string all_stubs() {
  std::string text;
  for (const auto& entry : fs::directory_iterator(fs::path(MSDBG_SOURCE_DIR) / "scripts/meta")) {
    if (entry.path().extension() == ".lua") text += read(entry.path()) + "\n";
  }
  return text;
}

using Classes = std::map<std::string, std::set<std::string>>;

// Class name -> members, from `---@class msdbg.X`, `---@field name` and `function X:name`: simpler than the parser of help, so the
// two check each other.
Classes parse_stubs(const std::string& text) {
  Classes classes;
  std::map<std::string, std::string> variables;
  std::string current;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, third;
    words >> first >> second >> third;
    if (first == "---@class") current = second.substr(0, second.find(':'));
    else if (first == "---@field" && second.front() != '[') classes[current].insert(second.substr(0, second.find('?')));
    else if (first == "local" && third == "=") variables[second] = current;
    else if (first == "function") {
      const size_t separator = second.find_first_of(".:"), end = second.find('(');
      if (separator == std::string::npos) continue;
      classes[variables[second.substr(0, separator)]].insert(second.substr(separator + 1, end - separator - 1));
    }
  }
  return classes;
}

TEST_F(Stubs, StubsAndBindingsAgree) {
  EXPECT_EQ(type("table.concat(require('msdbg.reference').disagreements(), '\\n')"), "");
}

TEST_F(Stubs, AMissingStubAndAMissingBindingAreTold) {
  run("local core = require 'msdbg.core'; core.members('tensor').brand_new = function() end");
  EXPECT_TRUE(contains(type("table.concat(require('msdbg.reference').disagreements(), '\\n')"),
                       "msdbg.Tensor.brand_new exists in class tensor, but has no stub"));
  run("local core = require 'msdbg.core'; core.members('tensor').brand_new = nil; core.members('tensor').slice = nil");
  EXPECT_TRUE(contains(type("table.concat(require('msdbg.reference').disagreements(), '\\n')"),
                       "msdbg.Tensor.slice has a stub, but does not exist in class tensor"));
}

TEST_F(Stubs, HelpReadsWhatThePagesSay) {
  for (const auto& [name, members] : parse_stubs(all_stubs())) {
    if (name.empty()) continue;
    for (const std::string& member : members) {
      const std::string known = "(require('msdbg.reference').class('" + name + "') or { members = {} }).members['" + member + "'] ~= nil";
      EXPECT_EQ(type(known), "true") << name << "." << member;
    }
  }
}

TEST_F(Stubs, StatisticsFieldsAgree) {
  const auto stubs = parse_stubs(all_stubs());
  for (const std::string& field : stubs.at("msdbg.Stats")) run("local _ = s:tensor('Log-op0').stats." + field);
  EXPECT_EQ(stubs.at("msdbg.Stats").size(), 16u);
}

TEST_F(Stubs, GuidePageNamesTheMembersOfTheCore) {
  const std::string page = read("docs/lua.md");
  for (const char* file : {"msdbg", "session", "live", "node", "tensor", "watch"}) {
    for (const auto& [name, fields] : parse_stubs(read(std::string("scripts/meta/") + file + ".lua"))) {
      for (const std::string& field : fields) EXPECT_TRUE(page.find(field) != std::string::npos) << name << "." << field;
    }
  }
}

TEST_F(Stubs, EveryFunctionAndEveryOptionIsDescribed) {
  run(R"(
    local reference, missing = require "msdbg.reference", {}
    for _, class in ipairs(reference.load().classes) do
      for _, member in ipairs(class.functions) do
        if member.doc == "" then missing[#missing + 1] = class.name .. "." .. member.name end
        for _, param in ipairs(member.params) do
          local name = param.type:match "msdbg%.[%w_]+Options"
          if name and not reference.options_of(param) then missing[#missing + 1] = name end
        end
      end
      if reference.is_options(class) and #class.fields == 0 then missing[#missing + 1] = class.name end
    end
    assert(#missing == 0, table.concat(missing, "\n"))
  )");
}

TEST_F(Stubs, HelpShowsOptionsAndExamples) {
  const std::string text = type("help session.tensors");
  EXPECT_TRUE(contains(text, "session:tensors(options?) -> msdbg.Tensor[]"));
  EXPECT_TRUE(contains(text, "      steps?  msdbg.Numbers  default the current one"));
  EXPECT_TRUE(contains(text, "  e.g. for _, t in ipairs(s:tensors {"));
  EXPECT_FALSE(contains(read("docs/reference.md"), "## msdbg.TensorsOptions"));
}

TEST_F(Stubs, ReferencePageIsUpToDate) {
  const ScriptOutcome outcome = script->run_text(
      "local file = assert(io.open(arg[1], 'w')); file:write(require('msdbg.reference_page').markdown()); file:close()", "@page.lua",
      {::testing::TempDir() + "reference.md"});
  ASSERT_EQ(outcome.error, "");
  std::ifstream made(::testing::TempDir() + "reference.md");
  std::stringstream text;
  text << made.rdbuf();
  EXPECT_TRUE(text.str() == read("docs/reference.md")) << "docs/reference.md differs from the stubs and commands; run tools/reference";
}

}  // namespace
}  // namespace msdbg::testing
