// Edges by equal values against the truth: the addresses of the memory, which were recorded beside the dump.
#include <map>

#include "msprobe/expected.h"

namespace msdbg::testing {
namespace {

class EdgesData : public ::testing::TestWithParam<const char*> {};

TEST_P(EdgesData, LeadToTheCallThatMadeTheValue) {
  const std::unique_ptr<Session> session = open_real(GetParam());
  ASSERT_NE(session, nullptr);
  const Graph& graph = *session->graphs().front();
  uint64_t right = 0;
  const nlohmann::json expected = expected_of(std::string(GetParam()) + ".edges");
  std::map<std::string, size_t> slots;  // edges are in the order of the slots
  for (const auto& edge : expected["step0"]["edges"]) {
    const auto to = edge["to"].get<std::string>();
    const Node* node = graph.find(to);
    ASSERT_NE(node, nullptr) << to;
    const size_t slot = slots[to]++;
    ASSERT_LT(slot, node->inputs.size()) << to;
    if (edge["from"].is_null()) continue;
    const Edge& found = node->inputs[slot];
    if (found.node == kNoNode) {
      // Single numbers and booleans are left out on purpose.
      const Result<TensorInfo> input = session->describe({0, 0, 0, 0, node->id, {Io::kInput, static_cast<uint32_t>(slot)}});
      ASSERT_TRUE(input.ok());
      EXPECT_TRUE(input->count < 2 || input->dtype == DType::kBool) << edge;
      continue;
    }
    // The same value under another name is as good: a view, a parameter or its gradient.
    const Node& maker = graph.node(found.node);
    const bool same = edge["from"] == nlohmann::json(maker.name) || edge["by_value"] == nlohmann::json(maker.name) || maker.kind == NodeKind::kParameter ||
                      maker.role == CallRole::kParameterGradients;
    right += same ? 1 : 0;
    EXPECT_TRUE(same) << edge << " found " << maker.name;
  }
  EXPECT_GT(right, 20u);
}

INSTANTIATE_TEST_SUITE_P(Real, EdgesData, ::testing::Values("26.2-torch-lenet-good", "26.2-torch-gpt-good"), test_name);

}  // namespace
}  // namespace msdbg::testing
