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
  for (const char* made : {"class=\"tools\"", "class=\"sort\"", "class=\"choice\"", "class=\"tip\""})
    EXPECT_NE(loaded.dom.find(made), std::string::npos) << made;
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
  // This proves that the test above would have failed.
  EXPECT_FALSE(loaded.console.empty());
}

/// The page of the explode dump in a frame of any width, which a window does not allow. `probe` gets its document as `d`, and its
/// value is the result. Without its policy, a script of ours can measure the page.
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

TEST_F(PageInBrowser, APictureLargerThanItsBoxShowsWhereTheFaultBegan) {
  const std::string probe =
      "[...d.querySelectorAll('.wide')].map(box => { const f = box.getBoundingClientRect(), o = box.querySelector('.origin')"
      ".getBoundingClientRect(), middle = (o.left + o.right) / 2; return o.top >= f.top && o.bottom <= f.bottom && middle > f.left && "
      "middle < f.right; }).join()";
  EXPECT_EQ(answer_in(load(framed(390, probe))), "true,true");
  EXPECT_EQ(answer_in(load(framed(1200, probe))), "true,true");
}

TEST_F(PageInBrowser, TablesAreSortedGroupedAndReadByStep) {
  const std::string probe =
      "(() => { const out = []; const sheet = [...d.querySelectorAll('#findings-list .sheet')].pop(), head = (t) => "
      "[...sheet.querySelectorAll('th')].find(h => h.textContent === t), pick = (s, v) => { s.value = v; "
      "s.dispatchEvent(new Event('change')); };"
      "const steps = () => [...sheet.querySelectorAll('tbody tr[data-step]:not([hidden])')].map(r => Number(r.dataset.step));"
      "const up = (l) => l.every((v, i) => i === 0 || l[i - 1] <= v);"
      "head('step').querySelector('button').click(); out.push(head('step').getAttribute('aria-sort'), up(steps()), steps().length > 50);"
      "head('step').querySelector('button').click(); out.push(head('step').getAttribute('aria-sort'), up(steps().reverse()));"
      "pick(sheet.querySelector('.tools select'), String([...sheet.querySelectorAll('th')].indexOf(head('rule'))));"
      "out.push(sheet.querySelectorAll('tr.group').length === new Set([...sheet.querySelectorAll('tr[data-step]')].map(r => "
      "r.cells[1].textContent)).size); const all = steps().length; sheet.querySelector('tr.group button').click();"
      "out.push(steps().length < all); sheet.querySelector('tr.group button').click();"
      "pick(d.querySelector('.contents select'), '4'); out.push(new Set(steps()).size);"
      "out.push([...d.querySelectorAll('.card[data-step]:not([hidden])')].every(c => c.dataset.step === '4')); return out.join(' '); })()";
  EXPECT_EQ(answer_in(load(framed(1200, probe))), "ascending true true descending true true true 1 true");
}

TEST_F(PageInBrowser, ChartsAndHeatMapsShowTheValueBelowThePointer) {
  const std::string probe =
      "(() => { const tip = d.querySelector('.tip'), move = (e, x, y) => e.dispatchEvent(new d.defaultView.PointerEvent('pointermove', "
      "{ bubbles: true, clientX: x, clientY: y })); const out = [tip.hidden]; move(d.querySelector('#trends .zone'), 9, 9);"
      "out.push(tip.hidden, tip.textContent); const cells = d.querySelector('.cells'), f = cells.querySelector('.frame')"
      ".getBoundingClientRect(); move(cells.firstElementChild, f.left + 2, f.top + 2); out.push(/^row 0, column 0: -?[0-9.e+]+$/"
      ".test(tip.textContent)); move(d.querySelector('h1'), 9, 9); out.push(tip.hidden); return out.join('|'); })()";
  EXPECT_EQ(answer_in(load(framed(1200, probe))), "true|false|step 0: 2.311|true|true");
}

TEST_F(PageInBrowser, MeasuresWellOnAPhoneALaptopAndPaper) {
  for (const char* dump : {"lenet-2.7.1-explode", "lenet-2.7.1-lognan", "lenet-2.7.1-ok", "control-1.5.0"}) {
    auto session = open_dump(std::string(MSDBG_TEST_DATA) + "/dumps/" + dump);
    ASSERT_TRUE(session) << session.status().message();
    const std::string file = dir_.file("page.html");
    std::ofstream(file) << page_of(**session);
    const std::string said = run(MSDBG_CHECK_PAGE " '" + file + "' 2>&1");
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << dump << ": " << said;
    EXPECT_NE(said.find(" pages\n"), std::string::npos) << said;
  }
}

TEST_F(PageInBrowser, WhatIsTooWideSqueezedOrTooLongIsFound) {
  const std::string file = dir_.file("page.html");
  std::ofstream(file) << "<!DOCTYPE html><html><body><main style=\"margin:0\"><h1>x</h1><p style=\"width:600px\">wide</p>"
                         "<p style=\"width:40px;overflow:hidden;white-space:nowrap\">a text that is cut</p>"
                         "<p style=\"width:50px\">a few words one below the other and some more</p>"
                         "<svg width=\"50\" height=\"20\"><text x=\"0\" y=\"12\">one label</text><text x=\"9\" y=\"12\">two</text></svg>"
                         "<div style=\"width:50px;overflow:auto\"><b style=\"white-space:nowrap\">a table to scroll</b></div>"
                         "<p style=\"break-before:page\">2</p></main></body></html>\n";
  const std::string said = run(MSDBG_CHECK_PAGE " --pages 1 '" + file + "' 2>&1");
  for (const char* part : {"375 px wide: the page is 6", "375 px wide: runs over the edge: <p class=\"\"> wide",
                           "text is cut: <p class=\"\"> a text", "squeezed to 50 px: <p", "cut by its picture: <text",
                           "overlaps another label: <text", "scrolls sideways: <div", "2 printed pages are more than 1"}) {
    EXPECT_NE(said.find(part), std::string::npos) << part << " in " << said;
  }
  EXPECT_EQ(said.find("1440 px wide: runs over"), std::string::npos) << said;
}

}  // namespace
}  // namespace msdbg
