// Which folders are a dump, and what of them is read.
#include "msprobe/msprobe_support.h"

namespace msdbg::testing {
namespace {

const std::string kCall = call_entry("Torch.log.0.forward", tensor_entry("[2]", "1.0", "0.0"), tensor_entry("[2]", "0.0", "-1.0"));

TEST(Layout, IsOpenedFromTheRootAStepOrARank) {
  WrittenDump dump;
  for (const char* folder : {"step0/rank0", "step0/rank1", "step10/rank0", "step2/rank0"}) dump.table(folder, kCall);
  EXPECT_TRUE(is_msprobe_dump(dump.path()));
  const auto whole = dump.open();
  EXPECT_EQ(whole->steps(), (std::vector<int64_t>{0, 2, 10}));
  EXPECT_EQ(std::vector<int>(whole->ranks().begin(), whole->ranks().end()), (std::vector<int>{0, 1}));
  for (const char* part : {"/step10", "/step10/rank0", "/step10/rank0/", "/step10/rank0/dump.json"}) {
    EXPECT_TRUE(is_msprobe_dump(dump.path() + part));
    const auto session = open_msprobe(dump.path() + part, {});
    ASSERT_TRUE(session.ok()) << session.status().message();
    EXPECT_EQ((*session)->steps(), std::vector<int64_t>{10}) << part;
  }
  const auto second = open_msprobe(dump.path() + "/step0/rank1", {});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*second)->ranks()[0], 1);
}

TEST(Layout, RanksAreChosen) {
  WrittenDump dump;
  for (const char* folder : {"step0/rank0", "step0/rank1"}) dump.table(folder, kCall);
  DumpOptions options;
  options.ranks = IntSet::of(1);
  const auto session = dump.open(options);
  EXPECT_EQ(session->ranks().size(), 1u);
  options.ranks = IntSet::of(7);
  EXPECT_EQ(open_msprobe(dump.path(), options).status().code(), Code::kNotFound);
}

TEST(Layout, OfOtherFoldersIsNoDump) {
  WrittenDump dump;
  dump.put("rank_0/Net/0/0/Add.Add-op0.0.0.1.output.0.DefaultFormat.npy", "");
  dump.put("step0/notes.txt", "");
  EXPECT_FALSE(is_msprobe_dump(dump.path()));
  EXPECT_FALSE(is_msprobe_dump(dump.path() + "/step0"));
  EXPECT_FALSE(is_msprobe_dump(dump.path() + "/nothing"));
  EXPECT_FALSE(is_msprobe_dump("/dev/null"));
  EXPECT_EQ(open_msprobe(dump.path(), {}).status().code(), Code::kNotFound);
}

TEST(Layout, HelperProcessesAreSetAside) {
  WrittenDump dump;
  for (const char* folder : {"step0/rank0", "step0/proc100"}) dump.table(folder, kCall);
  const auto session = dump.open();
  const SessionReport report = session->inspect();
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].severity, Severity::kInfo);
  EXPECT_NE(report.problems[0].message.find("proc100"), std::string::npos);
}

TEST(Layout, OfSeveralRunsTheNewestIsRead) {
  WrittenDump dump;
  for (const char* folder : {"step0/proc100", "step0/proc200"}) dump.table(folder, kCall);
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  std::filesystem::last_write_time(dump.path() + "/step0/proc200/dump.json", long_ago);
  const auto session = dump.open();
  const SessionReport report = session->inspect();
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_NE(report.problems[0].message.find("the newest, proc100, is read"), std::string::npos) << report.problems[0].message;
}

TEST(Layout, GraphAndPynativeAreTwoGraphs) {
  WrittenDump dump;
  dump.table("pynative/step0/rank0", kCall);
  dump.table("graph/step0/rank0", kCall);
  const auto session = dump.open();
  ASSERT_EQ(session->graphs().size(), 2u);
  EXPECT_EQ(session->graphs()[1]->id(), 1);
}

}  // namespace
}  // namespace msdbg::testing
