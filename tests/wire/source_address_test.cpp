#include <gtest/gtest.h>

#include "msdbg/wire.h"

namespace msdbg {
namespace {

std::vector<std::string> frames(std::string_view text) {
  std::vector<std::string> out;
  for (const StackFrame& frame : parse_source_address(text)) {
    out.push_back(frame.file + "|" + std::to_string(frame.line) + "|" + frame.code);
  }
  return out;
}

using Frames = std::vector<std::string>;

TEST(SourceAddress, LineInParenthesesUpTo18) {
  EXPECT_EQ(frames("      # In file /usr/lib/momentum.py(37)/        success = opt(a, b)/\n"),
            Frames{"/usr/lib/momentum.py|37|success = opt(a, b)"});
}

TEST(SourceAddress, LineBehindAColonFrom19) {
  EXPECT_EQ(frames("      # In file /data/lenet/train.py:72/        return self.fc3(x)/\n"),
            Frames{"/data/lenet/train.py|72|return self.fc3(x)"});
}

TEST(SourceAddress, ColumnsAndLastLineFrom23) {
  EXPECT_EQ(frames("      # In file /a/momentum.py:200~201, 22~72/            ok = f(x),/\n"
                   "      # In file /a/train.py:70, 12~23/        x = self.log(x)/\n"),
            (Frames{"/a/momentum.py|200|ok = f(x),", "/a/train.py|70|x = self.log(x)"}));
}

TEST(SourceAddress, WholeFunctionsAreLeftOut) {
  EXPECT_EQ(frames("      # In file /a/t.py:71, 12~22/        y = f(x)/\n"
                   "      # In file /a/t.py:64~72, 4~26/    def construct(self, x):/\n"
                   "      # In file /a/t.py:1639~1734/def flatten(input):/\n"
                   "      # In file /a/t.py:187~202, 4~22/    @jit(backend=\"ms_backend\")/\n"),
            Frames{"/a/t.py|71|y = f(x)"});
  EXPECT_EQ(frames("      # In file /a/t.py:5/def one_line(x): return x/\n").size(), 1u)
      << "no last line, so it is the call";
}

TEST(SourceAddress, HeadingsAndMarksOfDerivedNodesAreStripped) {
  EXPECT_EQ(frames("      # Corresponding code candidate:\n"
                   "      #  - In file /a/b.py:1, 2~3/    x/\n"
                   "      #    In file /a/c.py:2, 2~3/    y/\n"
                   "      # Corresponding forward node candidate:\n"
                   "      #  - inlined:In file /a/d.py:3/    z/\n"),
            (Frames{"/a/b.py|1|x", "/a/c.py|2|y", "/a/d.py|3|z"}));
}

TEST(SourceAddress, CodeAndPathMayHoldSlashesColonsAndParentheses) {
  EXPECT_EQ(frames("      # In file /a (copy)/x:y/t.py:12/  a = b / c[1:2](3)/\n"),
            Frames{"/a (copy)/x:y/t.py|12|a = b / c[1:2](3)"});
}

TEST(SourceAddress, CodeMayBeMissing) {
  EXPECT_EQ(frames("      # In file train.py(12)\n"), Frames{"train.py|12|"});
  EXPECT_EQ(frames("In file train.py:12/"), Frames{"train.py|12|"});
}

TEST(SourceAddress, ALineOfZeroOrLessIsUnknown) {
  EXPECT_EQ(frames("      # In file t.py:-1/ x/\n"), Frames{"t.py|0|x"});
}

TEST(SourceAddress, LinesThatAreNoLocationAreSkipped) {
  EXPECT_TRUE(frames("").empty());
  EXPECT_TRUE(frames("      # \n# In file\nIn file nothing\n      # In file a.py:99999999999999/x/\n").empty());
}

}  // namespace
}  // namespace msdbg
