// Pages of real dumps show the known facts about these dumps.
#include <gtest/gtest.h>

#include "msdbg/dump.h"
#include "msdbg/html_report.h"
#include "report/html_support.h"
#include "support/rank_dumps.h"

namespace msdbg {
namespace {

using testing::contents;

struct Pages {
  std::string html, markdown;
};

Pages pages_of(const std::string& dump) {
  auto session = open_dump(std::string(MSDBG_TEST_DATA) + "/dumps/" + dump);
  EXPECT_TRUE(session) << session.status().message();
  const PageFindings findings = look_for_page(**session, default_watchpoints(), {}).value();
  PageOptions options;
  options.dump = dump;
  return {page_text(**session, {&findings.check, &findings.origin}, options, PageForm::kHtml).value(),
          page_text(**session, {&findings.check, &findings.origin}, options, PageForm::kMarkdown).value()};
}

TEST(HtmlDumps, LogOfZeroIsTheVerdict) {
  const Pages pages = pages_of("lenet-2.7.1-lognan");
  EXPECT_TRUE(
      pages.markdown.starts_with("# `Log-op0` **broke first**: 104 of 192 elements are -Inf, in step 0 on rank 0, at `train.py:70`.\n"))
      << pages.markdown.substr(0, 200);
  EXPECT_EQ(testing::malformed(pages.html), "");
  EXPECT_EQ(testing::loads(pages.html), std::vector<std::string>{});
  for (const char* part :
       {"104 zeros at the same places", "128 of 128 NaN", "1344 of 1536 NaN", "absorbed here: the output has no NaN, it is all zero"}) {
    EXPECT_NE(pages.html.find(part), std::string::npos) << part;
    EXPECT_NE(pages.markdown.find(part), std::string::npos) << part;
  }
}

TEST(HtmlDumps, ExplosionIsShownWithBothOfItsPlacesAndItsGrowth) {
  const Pages pages = pages_of("lenet-2.7.1-explode");
  EXPECT_NE(pages.markdown.find("its only element is +Inf, in step 2 on rank 0"), std::string::npos);
  EXPECT_NE(pages.markdown.find("another place breaks first in step 4 (`fc2-Dense/MatMul-op0`)"), std::string::npos);
  EXPECT_NE(pages.markdown.find("64 of 64 elements are NaN"), std::string::npos);
  // Mean of |x| of conv1.weight after steps 0 to 3; fc3.weight grew most.
  EXPECT_NE(pages.html.find("0.09702 to 4.043e+10, log scale"), std::string::npos);
  EXPECT_NE(pages.markdown.find("The weights grew: mean \\|x\\| of `fc3.weight` from 0.05353 in step 0 to 1.889e+11 in step 3."),
            std::string::npos);
  EXPECT_LT(pages.html.size(), size_t{1} << 20);
}

TEST(HtmlDumps, HealthyDumpIsReportedAsClean) {
  const Pages pages = pages_of("lenet-2.7.1-ok");
  EXPECT_TRUE(pages.markdown.starts_with("# Nothing found among 198 tensors of 3 steps, 0 not checked.\n"))
      << pages.markdown.substr(0, 120);
  EXPECT_EQ(contents(pages.html, "h2"),
            (std::vector<std::string>{"Over the steps", "Layers", "Coverage", "Environment", "To see it again"}));
}

TEST(HtmlDumps, RanksHaveAChapter) {
  const Pages bad = pages_of("ranks-2.7.1-badbatch");
  for (const char* part : {"## Ranks", "hits in step", "rank 2", "### From rank to rank",
                           "ranks 0-1, 3 got it through AllReduce-op2", "72 tensors each; their losses are finite",
                           "Step 2, ranks 0-3: ", "another place breaks first in step 2, ranks 0-3 ("}) {
    EXPECT_NE(bad.markdown.find(part), std::string::npos) << part << "\n" << bad.markdown;
  }
  const Pages flip = pages_of("ranks-2.7.1-flip");
  for (const char* part :
       {"fc1.weight of rank 1 differs from the other replicas from step 1 on", "a single flipped bit (24)", "bit for bit"}) {
    EXPECT_NE(flip.html.find(part), std::string::npos) << part;
    EXPECT_NE(flip.markdown.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(flip.markdown.find("From rank to rank"), std::string::npos);
  for (const Pages& pages : {bad, flip}) {
    EXPECT_EQ(testing::malformed(pages.html), "");
    EXPECT_EQ(testing::lost_places(pages.html), std::vector<std::string>{});
  }
}

TEST(HtmlDumps, MissingStepsAndOtherSettingsAreInTheChapter) {
  test::RankDump dump("ranks-2.7.1-ok");
  dump.copy_ranks(3).remove_step(1, 1);
  for (const char* step : {"0", "1"}) dump.set(dump.file(2, std::stoi(step), "Parameter.learning_rate"), 0, 0.5F);
  auto session = open_dump(dump.path());
  ASSERT_TRUE(session) << session.status().message();
  const PageFindings findings = look_for_page(**session, default_watchpoints(), {}).value();
  const std::string page = page_text(**session, {&findings.check, &findings.origin}, {}, PageForm::kMarkdown).value();
  for (const char* part :
       {"rank 1 has no step 1.", "### Settings that differ", "| `learning_rate` | 0-1 | 0.05 |", "| `learning_rate` | 2 | **0.5** |"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  }
}

TEST(HtmlDumps, EveryKindOfDumpGivesAWholePage) {
  for (const char* dump : {"lenet-1.5.0-ok", "lenet-2.0.0-filter", "lenet-2.7.1-eval", "control-2.7.1", "control-1.5.0", "two-2.7.1",
                           "types-2.7.1", "long-2.7.1", "synthetic-stat-new", "synthetic-stat-old"}) {
    const Pages pages = pages_of(dump);
    EXPECT_EQ(testing::malformed(pages.html), "") << dump;
    EXPECT_EQ(testing::loads(pages.html), std::vector<std::string>{}) << dump;
    EXPECT_EQ(testing::lost_places(pages.html), std::vector<std::string>{}) << dump;
    EXPECT_EQ(contents(pages.html, "h1").size(), 1u) << dump;
  }
}

}  // namespace
}  // namespace msdbg
