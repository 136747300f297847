#include "msdbg/base.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "msdbg/terminal.h"

namespace msdbg {
namespace {

TEST(IntSet, AllContainsEverything) {
  const auto set = IntSet::parse("all");
  ASSERT_TRUE(set);
  EXPECT_TRUE(set->contains(0));
  EXPECT_TRUE(set->contains(INT64_MAX));
  EXPECT_TRUE(set->is_all());
}

TEST(IntSet, RangesIncludeBothEnds) {
  const auto set = IntSet::parse("0, 4,7:9");
  ASSERT_TRUE(set);
  for (int64_t in : {0, 4, 7, 8, 9}) EXPECT_TRUE(set->contains(in)) << in;
  for (int64_t out : {1, 3, 5, 6, 10}) EXPECT_FALSE(set->contains(out)) << out;
}

TEST(IntSet, OpenEnds) {
  EXPECT_TRUE(IntSet::parse("2:")->contains(1000000));
  EXPECT_FALSE(IntSet::parse("2:")->contains(1));
  EXPECT_TRUE(IntSet::parse(":5")->contains(0));
  EXPECT_FALSE(IntSet::parse(":5")->contains(6));
}

TEST(IntSet, TextReadsBack) {
  for (const char* text : {"all", "3", "0:10", "2:", "0,4,7:9"}) EXPECT_EQ(IntSet::parse(text)->text(), text);
}

TEST(IntSet, NonsenseIsRefusedWithTheFormsThatWork) {
  for (const char* text : {"", "x", "1,,2", "-1", "3:1", "1:2:3", "1e3", "0x1", "99999999999999999999"}) {
    const auto set = IntSet::parse(text);
    ASSERT_FALSE(set) << text;
    EXPECT_EQ(set.status().code(), Code::kInvalidArgument);
    EXPECT_FALSE(set.status().message().empty());
  }
}

TEST(Nearest, TypoFindsTheWord) {
  const std::vector<std::string> words = {"watch", "watches", "check", "recheck"};
  EXPECT_EQ(nearest("wach", words, 1), std::vector<std::string>{"watch"});
  EXPECT_EQ(nearest("chekc", words, 1), std::vector<std::string>{"check"});
}

TEST(Nearest, LastComponentDecides) {
  const std::vector<std::string> words = {"Default/a/relu4-ReLU/ReLU-op0", "Default/b/conv1-Conv2d/Conv2D-op0"};
  EXPECT_EQ(nearest("Conv2D-op1", words, 1).at(0), words[1]);
  EXPECT_EQ(nearest("relu4", words, 1).at(0), words[0]);
}

TEST(Nearest, TheSameLastComponentComesBeforeALookAlike) {
  const std::vector<std::string> words = {"b/Conv2DBackprop", "a/Conv2D"};
  EXPECT_EQ(nearest("Conv2D", words, 2), (std::vector<std::string>{words[1], words[0]}));
}

TEST(Nearest, NothingResemblesNonsense) {
  const std::vector<std::string> words = {"watch", "check"};
  EXPECT_TRUE(nearest("zzzzzzzz", words).empty());
  EXPECT_TRUE(nearest("", words).empty());
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ',').size(), 3u);
  EXPECT_EQ(split("", ',').size(), 1u);
}

TEST(Text, NumbersMustBeWhole) {
  EXPECT_EQ(parse_int("42"), 42);
  EXPECT_FALSE(parse_int("42x"));
  EXPECT_FALSE(parse_int(""));
  EXPECT_EQ(parse_double("1e-9"), 1e-9);
  EXPECT_TRUE(std::isinf(*parse_double("-inf")));
  EXPECT_FALSE(parse_double("1e-9 "));
  EXPECT_FALSE(parse_double(" 1"));
}

TEST(Text, DoublesReadBack) {
  for (double v : {0.1, 1.0 / 3, 5e-324, std::numeric_limits<double>::max(), -0.020966000854969025}) {
    EXPECT_EQ(std::strtod(format_double(v).c_str(), nullptr), v);
  }
  EXPECT_EQ(format_double(NAN), "NaN");
  EXPECT_EQ(format_double(-INFINITY), "-Infinity");
}

TEST(Text, ShortNumbersDropZeros) {
  EXPECT_EQ(format_short(0.08430001), "0.0843");
  EXPECT_EQ(format_short(-0.0), "0");
  EXPECT_EQ(format_short(3.4e36), "3.4e+36");
  EXPECT_EQ(format_short(-INFINITY), "-Inf");
}

TEST(Text, BytesHaveUnits) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(5242880), "5.0 MiB");
}

TEST(Text, RunsOfNumbersAreJoined) {
  EXPECT_EQ(numbers_text(std::vector<int64_t>{0, 1, 2, 3, 7}), "0-3, 7");
  EXPECT_EQ(numbers_text(std::vector<int64_t>{4, 6}), "4, 6");
  EXPECT_EQ(numbers_text(std::vector<int64_t>{0, 2, 4, 6, 8}), "0, 2, 4, 6, 8");
  EXPECT_EQ(numbers_text(std::vector<int64_t>{0, 2, 4, 6, 8, 10, 11, 12, 20}), "0, 2, ..., 10, 11-12, 20");
  EXPECT_EQ(numbers_text(std::vector<int64_t>{1, 2, 3, 11, 19, 27, 35, 43, 51}), "1-3, 11, 19, ..., 51");
  EXPECT_EQ(numbers_text({}), "none");
}

TEST(Printable, EscapeSequencesAreDefused) {
  EXPECT_EQ(printable("a\x1b[31mb\n"), "a?[31mb?");
  EXPECT_EQ(printable("\xc2\x9b" "31m"), "?31m");
}

TEST(Printable, Utf8StaysAndBrokenBytesGo) {
  EXPECT_EQ(printable("\xd1\x84x"), "\xd1\x84x");
  EXPECT_EQ(printable("\xff" "a\xe2\x82"), "?a??");
  EXPECT_EQ(printable("\xc0\xaf"), "??");
}

TEST(Interrupt, FlagIsRaisedAndCleared) {
  EXPECT_FALSE(interrupt_requested());
  request_interrupt();
  EXPECT_TRUE(interrupt_requested());
  clear_interrupt();
  EXPECT_FALSE(interrupt_requested());
}

TEST(Log, SinkReceivesTheText) {
  std::string seen;
  set_log_sink([&](LogLevel, std::string_view text) { seen = text; });
  log(LogLevel::kWarning, "disk is full");
  set_log_sink(nullptr);
  log(LogLevel::kWarning, "nobody hears this");
  EXPECT_EQ(seen, "disk is full");
}

TEST(Result, CarriesValueOrStatus) {
  const Result<int> good = 3;
  const Result<int> bad = Status(Code::kNotFound, "no such step");
  EXPECT_EQ(*good, 3);
  EXPECT_TRUE(good.status().ok());
  EXPECT_FALSE(bad);
  EXPECT_EQ(code_name(bad.status().code()), "not_found");
}

TEST(Result, ReadingTheWrongSideThrowsInEveryBuild) {
  const Result<int> bad = Status(Code::kNotFound, "no such step");
  EXPECT_THROW(static_cast<void>(bad.value()), std::bad_variant_access);
  EXPECT_THROW(Result<int>(Status{}), InternalError);
}

TEST(Check, NamesConditionAndPlaceWithoutTheFolderOfTheBuild) {
  try {
    MSDBG_CHECK(1 + 1 == 3);
    FAIL() << "no exception";
  } catch (const InternalError& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with("internal error: 1 + 1 == 3 does not hold (base/base_test.cpp:"))
        << error.what();
  }
}

TEST(Visible, ShowsWhatSteersTerminals) {
  EXPECT_EQ(visible("plain\n\ttext \xd1\x84 \xe2\x96\x88", false), "plain\n\ttext \xd1\x84 \xe2\x96\x88");
  EXPECT_EQ(visible("\x1b[31m\r\x7f\b", false), "\\x1b[31m\\x0d\\x7f\\x08");
  EXPECT_EQ(visible("\xc2\x9b" "2J", false), "\\xc2\\x9b" "2J");  // C1: the same as ESC [
  EXPECT_EQ(visible("\x9b" "2J\xff\xe2\x96", false), "\\x9b" "2J\\xff\\xe2\\x96");
  EXPECT_EQ(visible(std::string_view("\0a", 2), false), "\\x00a");
}

TEST(Visible, LetsColoursPassAndNothingElse) {
  EXPECT_EQ(visible("\x1b[38;5;17mx\x1b[m", true), "\x1b[38;5;17mx\x1b[m");
  EXPECT_EQ(visible("\x1b[31H\x1b[?25l\x1b[", true), "\\x1b[31H\\x1b[?25l\\x1b[");
  EXPECT_EQ(visible("\x1b[8mhidden\x1b[5;31m", true), "\\x1b[8mhidden\\x1b[5;31m");  // a colour that msdbg does not use
}

TEST(Visible, ShowsWhatTurnsTheOrderOfTheCharactersOrEndsALine) {
  EXPECT_EQ(visible("a\xe2\x80\xae" "b", false), "a\\xe2\\x80\\xaeb");  // right-to-left override
  EXPECT_EQ(printable("a\xe2\x80\xa8" "b\xe2\x81\xa6" "c\xd8\x9c" "d\xe2\x80\x8f"), "a?b?c?d?");
  EXPECT_EQ(printable("\xe2\x80\x94 \xe2\x80\xa6 \xd7\x90"), "\xe2\x80\x94 \xe2\x80\xa6 \xd7\x90");  // dash, ellipsis, a letter
}

TEST(Visible, JsonStaysTheSameJson) {
  EXPECT_EQ(visible_json("{\"a\": \"\xc2\x9b\xe2\x80\xae\x7f\xf0\x9f\x98\x80\\n\"}\n"),
            "{\"a\": \"\\u009b\\u202e\\u007f\xf0\x9f\x98\x80\\n\"}\n");
}

}  // namespace
}  // namespace msdbg
