#include "report/table.h"

#include <gtest/gtest.h>

#include "support/fake_session.h"
#include "support/faulty_disk.h"

namespace msdbg {
namespace {

using Row = std::vector<Table::Cell>;

TEST(Table, ColumnsAlignAndLinesHaveNoTrailingBlanks) {
  Table table({{"step", Align::kRight}, {"node"}, {"what"}});
  table.add(Row{"2", "a", ""});
  table.add(Row{"10", "bcd", "x"});
  EXPECT_EQ(table.text({}), "step  node  what\n   2  a\n  10  bcd   x\n");
}

/// Rows of 64 MiB: more than a table keeps in memory.
struct LongTable {
  Table table{{{"row", Align::kRight}, {"text"}}};
  size_t wrong = 0, lines = 0;

  LongTable() {
    for (size_t i = 0; i < kRows; ++i) table.add(Row{std::to_string(i), text_of(i)});
  }
  /// Compares each line with what it should be.
  Status write() {
    return table.write({}, [&](std::string_view piece) {
      rest_ += piece;
      size_t begin = 0;
      for (size_t end; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
        const std::string_view line(rest_.data() + begin, end - begin);
        const std::string number = lines == 0 ? "row" : std::to_string(lines - 1);
        const std::string expected = std::string(5 - number.size(), ' ') + number + "  " + (lines == 0 ? "text" : text_of(lines - 1));
        wrong += line == expected ? 0 : 1;
        ++lines;
      }
      rest_.erase(0, begin);
      return Status();
    });
  }

  static constexpr size_t kRows = 65536;

 private:
  static std::string text_of(size_t row) { return std::string(1016, static_cast<char>('a' + row % 26)) + "."; }
  std::string rest_;
};

void expect_every_row() {
  LongTable made;
  ASSERT_TRUE(made.write().ok());
  EXPECT_EQ(made.lines, LongTable::kRows + 1);
  EXPECT_EQ(made.wrong, 0u);
}

TEST(Table, MoreRowsThanMemoryIsForAreWrittenInOrder) { expect_every_row(); }

TEST(Table, RowsThatNoFileTakesStayInMemory) {
  test::FaultyDisk disk;
  disk.room = 3000000;  // within the third block
  expect_every_row();
}

TEST(Table, ALostRowIsAnError) {
  test::FaultyDisk disk;
  LongTable made;
  disk.bad_from = 5000000;
  EXPECT_EQ(made.write().code(), Code::kIoError);
}

TEST(RanksCell, LeavesRoomForOtherColumns) {
  std::vector<int> even, odd_ones;
  for (int rank = 0; rank < 64; ++rank) {
    if (rank % 2 == 0) even.push_back(rank);
    if (rank % 5 < 2 || rank % 7 == 0) odd_ones.push_back(rank);
  }
  EXPECT_EQ(ranks_cell(even), "0, 2, ..., 62");
  EXPECT_EQ(ranks_cell(odd_ones), "0-1, 5-7, 10-11 and 25 more");
  EXPECT_EQ(ranks_cell(std::vector<int>{3}), "3");
}

ReportStyle narrow(size_t width) {
  ReportStyle style;
  style.width = width;
  return style;
}

Table::Cell name(const std::string& full, const std::string& shortest) { return Table::Cell::name(full, shortest.size()); }

TEST(Table, NamesLoseScopesAsLongAsTheyStayUnique) {
  Table table({{.title = "node", .fit = Fit::kName}, {"what"}});
  table.add({name("Default/network-WithLossCell/_backbone-LeNet5/fc2-Dense/MatMul-op0", "fc2-Dense/MatMul-op0"), "64 of 64 NaN"});
  table.add({name("Default/network-WithLossCell/Log-op0", "Log-op0"), "x"});
  EXPECT_EQ(table.text(narrow(60)),
            "node                                   what\n"
            "_backbone-LeNet5/fc2-Dense/MatMul-op0  64 of 64 NaN\n"
            "Default/network-WithLossCell/Log-op0   x\n");
  EXPECT_EQ(table.text(narrow(40)), "node                  what\nfc2-Dense/MatMul-op0  64 of 64 NaN\nLog-op0               x\n");
  ReportStyle wide = narrow(40);
  wide.wide = true;
  EXPECT_EQ(table.text(wide), table.text({}));
  EXPECT_NE(table.text({}).find("Default/network-WithLossCell/_backbone-LeNet5/fc2"), std::string::npos);
}

TEST(Table, AnyEndingWillDoForOtherNames) {
  Table table({{.title = "file", .fit = Fit::kName}, {"n"}});
  table.add(Row{"/data/some/where/else/train.py", "1"});
  EXPECT_EQ(table.text(narrow(24)), "file               n\n.../else/train.py  1\n");
}

TEST(Table, ANameThatDoesNotFitStandsOnItsOwnLine) {
  Table table({{"step", Align::kRight}, {.title = "node", .fit = Fit::kName}, {"what"}});
  table.add({"0", name("a/abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz"), "12 of 13 NaN"});
  table.add({"1", name("a/b", "b"), "x"});
  EXPECT_EQ(table.text(narrow(36)),
            "step  node              what\n"
            "   0  abcdefghijklmnopqrstuvwxyz\n"
            "                        12 of 13 NaN\n"
            "   1  a/b               x\n");
}

TEST(Table, ColumnsAreLeftOutByTheirNumberAndNamed) {
  Table table({{"step"}, {.title = "min", .drop = 1}, {.title = "mean", .drop = 2}, {.title = "std", .drop = 3}, {"not finite"}});
  table.add(Row{"0", "-0.123456", "0.0123456", "0.98765432", "1 NaN"});
  EXPECT_EQ(table.text(narrow(30)), "step  min        not finite\n0     -0.123456  1 NaN\ncolumns left out: mean, std (--wide)\n");
  ReportStyle script = narrow(30);
  script.place = Place::kScript;
  EXPECT_NE(table.text(script).find("columns left out: mean, std\n"), std::string::npos);
  EXPECT_EQ(table.text({}).find("left out"), std::string::npos);
}

TEST(Table, AnEmptyColumnGoesFirstWithoutAWord) {
  Table table({{"step"}, {.title = "mean", .drop = 2}, {.title = "not finite", .drop = Table::kIfEmpty}});
  table.add(Row{"0", "0.0123456", ""});
  EXPECT_EQ(table.text(narrow(20)), "step  mean\n0     0.0123456\n");
  EXPECT_EQ(table.text({}), "step  mean       not finite\n0     0.0123456\n");
}

TEST(Table, TextLosesItsEndAndNumbersNothing) {
  Table table({{"n", Align::kRight}, {.title = "what", .fit = Fit::kText, .least = 6}});
  table.add(Row{"123456789012", "训练损失 不是 有限"});
  EXPECT_EQ(table.text(narrow(22)), "           n  what\n123456789012  训练损\u2026\n");
}

TEST(NameCell, IsUniqueInTheSession) {
  testing::FakeSession s(testing::fake_graph({{"Default/fc1/MatMul-op0", "X"}, {"Default/fc2/MatMul-op0", "X"}, {"Default/Log-op0", "X"}}));
  const Table::Cell cell = name_cell(s, s.id("Default/fc1/MatMul-op0", 0), ":input:1");
  EXPECT_EQ(cell.text, "Default/fc1/MatMul-op0:input:1");
  EXPECT_EQ(cell.least, std::string("fc1/MatMul-op0:input:1").size());
  EXPECT_EQ(name_within(s, s.id("Default/fc1/MatMul-op0", 0), "", 40, narrow(60)), "fc1/MatMul-op0");
  EXPECT_EQ(name_within(s, s.id("Default/fc1/MatMul-op0", 0), "", 30, narrow(60)), "Default/fc1/MatMul-op0");
  EXPECT_EQ(tensor_name(s, s.id("Default/Log-op0", 0), narrow(60)), "Log-op0:output:0");
  EXPECT_EQ(tensor_name(s, s.id("Default/Log-op0", 0), {}), "Default/Log-op0:output:0");
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
  EXPECT_EQ(not_checked_text(s, entries, coverage, {}),
            "not checked: 6 of 9 tensors\n"
            "  step 0  a:output:0  TO  cut off\n  step 1  a:output:0  TO  cut off\n  step 2  a:output:0  TO  cut off\n"
            "  ... 2 more for the same reason (all: --wide)\n"
            "  step 0  b:output:0  TO  no npy file\n");
  EXPECT_EQ(not_checked_text(s, {}, coverage, {}), "");
}

TEST(NotCheckedText, RulesOfOneTensorAreJoinedAndNamedWithoutAnAbbreviation) {
  testing::FakeSession s(testing::fake_graph({{"a", "X"}}));
  const TensorId id = s.id("a", 0);
  Coverage coverage;
  coverage.tensors = coverage.not_checked = 1;
  const std::vector<NotChecked> entries = {
      {1, "tensor_overflow", "TO", id, "cut off", 0}, {2, "dead-relu", "", id, "cut off", 0}, {3, "late", "", id, "slow", 0}};
  EXPECT_EQ(not_checked_text(s, entries, coverage, {}),
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
