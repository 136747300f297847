#include "session/msprobe/trace.h"

#include <gtest/gtest.h>

namespace msdbg::msprobe {
namespace {

TEST(Frame, IsParsedFromTheRight) {
  const StackFrame frame = parse_frame("File /a, line 2, in b/net.py, line 45, in forward, \n x = f(a, in=1)");
  EXPECT_EQ(frame.file, "/a, line 2, in b/net.py");
  EXPECT_EQ(frame.line, 45);
  EXPECT_EQ(frame.code, "x = f(a, in=1)");
  EXPECT_EQ(parse_frame("anything").file, "anything");
  EXPECT_EQ(parse_frame("File a.py, line 99999999999, in f").line, 0);
}

TEST(Stacks, OfBothForms) {
  const Stacks grouped = read_stacks(R"({"0": [["a", "b"], ["File t.py, line 1, in f, \n x", "File u.py, line 2, in g, \n y"]]})");
  EXPECT_FALSE(grouped.by_entry);
  ASSERT_EQ(grouped.of.at("b").size(), 2u);
  EXPECT_EQ(grouped.of.at("b")[1].line, 2);
  const Stacks plain = read_stacks(R"({"a.0.forward": ["File t.py, line 1, in f, \n x"]})");
  EXPECT_TRUE(plain.by_entry);
  EXPECT_EQ(plain.of.at("a.0.forward").size(), 1u);
}

TEST(Stacks, LeaveOutTheRecorder) {
  const Stacks stacks = read_stacks(
      R"({"0": [["a"], ["File /usr/lib/python3.11/site-packages/msprobe/core/api.py, line 9, in f, \n x",
                        "File /home/msprobe/t.py, line 1, in f, \n y"]]})");
  ASSERT_EQ(stacks.of.at("a").size(), 1u);
  EXPECT_EQ(stacks.of.at("a")[0].file, "/home/msprobe/t.py");
}

TEST(Callers, WithAndWithoutMicroSteps) {
  const Callers callers = read_callers(R"({"a": "M", "b": null, "c": ["M", 1], "d": [null, 1], "megatron_micro_step_number": 2})");
  EXPECT_EQ(callers.of.at("a"), "M");
  EXPECT_EQ(callers.of.at("b"), "");
  EXPECT_EQ(callers.of.at("c"), "M");
  EXPECT_EQ(callers.of.at("d"), "");
  EXPECT_EQ(callers.of.size(), 4u);
}

}  // namespace
}  // namespace msdbg::msprobe
