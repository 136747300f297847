#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "msdbg/dump.h"
#include "msdbg/html_report.h"
#include "support/fake_session.h"
#include "support/temp_dir.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeSession;

std::string run(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string out;
  char block[65536];
  for (size_t n; (n = std::fread(block, 1, sizeof block, pipe)) > 0;) out.append(block, n);
  ::pclose(pipe);
  return out;
}

const std::string& browser() {
  static const std::string kFound = [] {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      const std::string path = run(std::string("command -v ") + name + " 2>/dev/null");
      if (!path.empty()) return path.substr(0, path.find('\n'));
    }
    return std::string();
  }();
  return kFound;
}

struct Loaded {
  std::string dom;                   ///< after the scripts ran
  std::vector<std::string> console;  ///< lines that the page or its policy wrote
};

class PageInBrowser : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(browser().empty()) << "no chromium on this machine: tools/test installs it, tools/packages.txt lists it";
  }

  Loaded load(const std::string& page, const std::string& options = "") {
    const std::string file = dir_.file("page.html"), log = dir_.file("log");
    std::ofstream(file) << page;
    Loaded loaded;
    loaded.dom = run("timeout 120 " + browser() + " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir='" +
                     dir_.file("profile") + "' --enable-logging=stderr " + options + " --dump-dom 'file://" + file + "' 2>'" + log + "'");
    std::ifstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("CONSOLE") != std::string::npos) loaded.console.push_back(line);
    }
    return loaded;
  }

  test::TempDir dir_;
};

std::string page_of(Session& session) {
  const PageFindings findings = look_for_page(session, default_watchpoints(), {}).value();
  return page_text(session, {&findings.check, &findings.origin}, {}, PageForm::kHtml).value();
}

TEST_F(PageInBrowser, ShowsEveryChapterAndTheConsoleIsSilent) {
  auto session = open_dump(std::string(MSDBG_TEST_DATA) + "/dumps/lenet-2.7.1-explode");
  ASSERT_TRUE(session) << session.status().message();
  const Loaded loaded = load(page_of(**session));
  EXPECT_EQ(loaded.console, std::vector<std::string>{});
  for (const char* id : {"origin", "graph", "tensors", "trends", "findings-list", "source", "coverage", "environment", "commands"}) {
    EXPECT_NE(loaded.dom.find(std::string("<section id=\"") + id + "\""), std::string::npos) << id;
    EXPECT_NE(loaded.dom.find(std::string("<a href=\"#") + id + "\""), std::string::npos) << id;
  }
  EXPECT_NE(loaded.dom.find("class=\"msdbg-graph\""), std::string::npos);
  // The policy lets our own script run.
  EXPECT_NE(loaded.dom.find("class=\"copy\""), std::string::npos);
  EXPECT_NE(loaded.dom.find("class=\"filter\""), std::string::npos);
}

TEST_F(PageInBrowser, HostileNamesMakeNoElementsAndNoNoise) {
  const std::string log = "Default/<script>document.title='owned'</script><img src=x>/\"onload=\"x/Log-op0";
  FakeSession s(fake_graph(
      {{"x", "Parameter"}, {log, "Log", {"x"}, 1, {{"/data/train.py", 70, "</script><script>document.title='owned'</script>"}}}}));
  s.put("x", 0, f32({0, 1}));
  s.put(log, 0, f32({-INFINITY, 0}));
  const Loaded loaded = load(page_of(s));
  EXPECT_EQ(loaded.console, std::vector<std::string>{});
  EXPECT_EQ(loaded.dom.find("<title>owned"), std::string::npos);
  EXPECT_EQ(loaded.dom.find("<img"), std::string::npos);
  size_t scripts = 0;
  for (size_t at = loaded.dom.find("<script"); at != std::string::npos; at = loaded.dom.find("<script", at + 1)) ++scripts;
  EXPECT_EQ(scripts, 1u);
}

TEST_F(PageInBrowser, PolicyStopsWhatIsNotOurs) {
  FakeSession s(fake_graph({{"x", "Parameter"}}));
  s.put("x", 0, f32({0, 1}));
  std::string page = page_of(s);
  const std::string foreign = "<script>document.title='owned'</script>";
  page.insert(page.find("</main>"), foreign);
  const Loaded loaded = load(page);
  EXPECT_EQ(loaded.dom.find("<title>owned"), std::string::npos);
  // And so the test above would have seen it.
  EXPECT_FALSE(loaded.console.empty());
}

/// The page of the explode dump in a frame as narrow as we like, which a window is not; `probe` gets its document as `d` and its value
/// is the answer. Without its policy the page may be measured by a script of ours.
std::string framed(int width, const std::string& probe) {
  auto session = open_dump(std::string(MSDBG_TEST_DATA) + "/dumps/lenet-2.7.1-explode");
  if (!session) return session.status().message();
  std::string page = page_of(**session);
  const size_t policy = page.find("<meta http-equiv");
  page.erase(policy, page.find('\n', policy) - policy);
  std::string quoted;
  for (char c : page) quoted += c == '"' ? std::string("&quot;") : c == '&' ? std::string("&amp;") : std::string(1, c);
  return "<!DOCTYPE html><html><body><iframe width=\"" + std::to_string(width) + "\" height=\"800\" srcdoc=\"" + quoted +
         "\"></iframe><p id=\"w\"></p><script>onload = () => { const d = document.querySelector('iframe').contentDocument;"
         "document.getElementById('w').textContent = 'answer ' + (" +
         probe + "); };</script></body></html>";
}

std::string answer_in(const Loaded& loaded) {
  constexpr std::string_view kBefore = "<p id=\"w\">answer ";
  const size_t at = loaded.dom.find(kBefore);
  if (at == std::string::npos) return "no answer";
  return loaded.dom.substr(at + kBefore.size(), loaded.dom.find('<', at + kBefore.size()) - at - kBefore.size());
}

TEST_F(PageInBrowser, NothingRunsOverTheEdgeOfAPhone) {
  const std::string width = answer_in(load(framed(390, "d.documentElement.scrollWidth")));
  ASSERT_NE(width, "no answer");
  EXPECT_LE(std::stoi(width), 390);
}

TEST_F(PageInBrowser, APictureLargerThanItsBoxShowsWhereTheFaultBegan) {
  const std::string probe =
      "[...d.querySelectorAll('.wide')].map(box => { const f = box.getBoundingClientRect(), o = box.querySelector('.origin')"
      ".getBoundingClientRect(), middle = (o.left + o.right) / 2; return o.top >= f.top && o.bottom <= f.bottom && middle > f.left && "
      "middle < f.right; }).join()";
  EXPECT_EQ(answer_in(load(framed(390, probe))), "true,true");
  EXPECT_EQ(answer_in(load(framed(1200, probe))), "true,true");
}

TEST_F(PageInBrowser, OnAPhoneAFindingIsReadWithoutMovingTheTableSideways) {
  const std::string probe =
      "[...d.querySelectorAll('.stacks')].every(t => t.getBoundingClientRect().width === 0 || t.scrollWidth <= t.parentNode.clientWidth) "
      "&& d.querySelectorAll('.stacks tbody tr').length > 12";
  EXPECT_EQ(answer_in(load(framed(390, probe))), "true");
}

}  // namespace
}  // namespace msdbg
