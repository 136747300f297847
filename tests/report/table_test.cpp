#include "report/table.h"

#include <gtest/gtest.h>

#include "support/fake_session.h"

namespace msdbg {
namespace {

using Row = std::vector<Table::Cell>;

TEST(Shorten, LeadingScopesGoFirst) {
  EXPECT_EQ(shorten("Default/network/fc2-Dense/MatMul-op0", 26), ".../fc2-Dense/MatMul-op0");
  EXPECT_EQ(shorten("Default/MatMul-op0", 40), "Default/MatMul-op0");
}

TEST(Shorten, LongLastComponentLosesItsMiddle) {
  const std::string text = shorten("Default/SparseSoftmaxCrossEntropyWithLogits-op0", 30);
  EXPECT_EQ(display_width(text), 30u);
  EXPECT_EQ(text.substr(0, 10), ".../Sparse");
  EXPECT_EQ(text.substr(text.size() - 4), "-op0");
}

TEST(Shorten, CutsBetweenCodePoints) {
  const std::string text = shorten("ффффффффффффффффффффф", 11);
  EXPECT_EQ(display_width(text), 11u);
  EXPECT_EQ(printable(text), text);
}

TEST(Table, ColumnsAlignAndLinesHaveNoTrailingBlanks) {
  Table table({{"step", Align::kRight}, {"node"}, {"what"}});
  table.add(Row{"2", "a", ""});
  table.add(Row{"10", "bcd", "x"});
  EXPECT_EQ(table.text({}), "step  node  what\n   2  a\n  10  bcd   x\n");
}

TEST(Table, OnlyShrinkingColumnsGiveWay) {
  Table table({{"node", Align::kLeft, true}, {"what"}});
  table.add(Row{"Default/network-WithLossCell/_backbone-LeNet5/fc2-Dense/MatMul-op0", "64 of 64 NaN"});
  ReportStyle style;
  style.width = 50;
  EXPECT_NE(table.text(style).find(".../fc2-Dense/MatMul-op0"), std::string::npos);
  style.wide = true;
  EXPECT_NE(table.text(style).find("Default/network-WithLossCell"), std::string::npos);
}

TEST(Table, ColourDoesNotShiftColumns) {
  Table table({{"rule"}, {"what"}});
  table.add(Row{{"TO", Paint::kError}, "x"});
  ReportStyle style;
  style.colour = true;
  EXPECT_EQ(table.text(style), "rule  what\n\x1b[31mTO\x1b[0m    x\n");
}

TEST(ShellWord, QuotesWhatTheShellWouldRead) {
  EXPECT_EQ(shell_word("dumps/lenet-2.7.1:0"), "dumps/lenet-2.7.1:0");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(NotCheckedText, EqualReasonsAreJoined) {
  testing::FakeSession s(testing::fake_graph({{"a", "X"}, {"b", "X"}}));
  std::vector<NotChecked> entries;
  for (int64_t step = 0; step < 5; ++step)
    entries.push_back({1, "tensor_overflow", "TO", s.id("a", step), "cut off", 0});
  entries.push_back({1, "tensor_overflow", "TO", s.id("b", 0), "no npy file", 0});
  Coverage coverage;
  coverage.tensors = 9;
  coverage.not_checked = 6;
  EXPECT_EQ(not_checked_text(s, entries, coverage, false),
            "not checked: 6 of 9 tensors\n"
            "  step 0  a:output:0  TO  cut off\n  step 1  a:output:0  TO  cut off\n  step 2  a:output:0  TO  cut off\n"
            "  ... 2 more for the same reason (all: --wide)\n"
            "  step 0  b:output:0  TO  no npy file\n");
  EXPECT_EQ(not_checked_text(s, {}, coverage, false), "");
}

TEST(NotCheckedText, RulesOfOneTensorAreJoinedAndNamedWithoutAnAbbreviation) {
  testing::FakeSession s(testing::fake_graph({{"a", "X"}}));
  const TensorId id = s.id("a", 0);
  Coverage coverage;
  coverage.tensors = coverage.not_checked = 1;
  const std::vector<NotChecked> entries = {
      {1, "tensor_overflow", "TO", id, "cut off", 0}, {2, "dead-relu", "", id, "cut off", 0}, {3, "late", "", id, "slow", 0}};
  EXPECT_EQ(not_checked_text(s, entries, coverage, false),
            "not checked: 1 of 1 tensor\n"
            "  step 0  a:output:0  TO, dead-relu  cut off\n"
            "  step 0  a:output:0  late  slow\n");
}

TEST(LinesText, KeepsTheCaretBelowWhatItPointsAt) {
  EXPECT_EQ(lines_text("wrong\n  max(x) >> 0\n          ^\x1b"), "wrong\n      max(x) >> 0\n              ^?");
  EXPECT_EQ(lines_text("one"), "one");
}

}  // namespace
}  // namespace msdbg
