// The verdict of a comparison as a person reads it.
#include <gtest/gtest.h>

#include "msdbg/report.h"
#include "support/fake_session.h"

namespace msdbg {
namespace {

using testing::f32;
using testing::fake_graph;
using testing::FakeNode;
using testing::FakeSession;

std::string verdict(FakeSession& a, FakeSession& b) {
  const DiffResult result = diff_sessions(a, b, {}).value();
  const std::string text = diff_report(a, b, result, {});
  return text.substr(0, text.find('\n'));
}

TEST(DiffReport, NodesOfOneRunArePartOfTheVerdict) {
  const std::vector<FakeNode> both = {{"x", "Parameter"}, {"net/Abs-op0", "Abs", {"x"}}};
  std::vector<FakeNode> more = both;
  more.push_back({"net/Transpose-op0", "Transpose", {"x"}});
  FakeSession a(fake_graph(more)), b(fake_graph(both));
  for (FakeSession* s : {&a, &b}) {
    s->put("x", 0, f32({1, 2}));
    s->put("net/Abs-op0", 0, f32({1, 2}));
  }
  a.put("net/Transpose-op0", 0, f32({1, 2}));
  EXPECT_EQ(verdict(a, b), "equal: 2 tensors: bit for bit the same; 1 node only in A (Transpose-op0)");
  EXPECT_EQ(verdict(b, a), "equal: 2 tensors: bit for bit the same; 1 node only in B (Transpose-op0)");
  a.put("net/Abs-op0", 0, f32({1, 3}));
  EXPECT_EQ(verdict(a, b),
            "different: 1 of 2 tensors, first in step 0 at Abs-op0, whose inputs agree; 1 node only in A (Transpose-op0)");
}

TEST(DiffReport, RandomOperatorsAreNamedAndNotBlamed) {
  const std::vector<FakeNode> nodes = {
      {"x", "Parameter"}, {"net/Dropout-op0", "Dropout", {"x"}}, {"net/Abs-op0", "Abs", {"net/Dropout-op0"}}};
  FakeSession a(fake_graph(nodes)), b(fake_graph(nodes));
  for (FakeSession* s : {&a, &b}) {
    s->put("x", 0, f32({1, 2}));
    for (const char* name : {"net/Dropout-op0", "net/Abs-op0"}) s->put(name, 0, s == &a ? f32({0, 4}) : f32({2, 0}));
  }
  EXPECT_EQ(verdict(a, b), "different: 2 of 3 tensors, all because of random operators: Dropout-op0 in step 0");
  a.put("x", 0, f32({1, 3}));
  EXPECT_EQ(verdict(a, b), "different: 3 of 3 tensors, first in step 0 at x, which came in different");
}

}  // namespace
}  // namespace msdbg
