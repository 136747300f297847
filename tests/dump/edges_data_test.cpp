// Proof that files and nodes were joined correctly: every recorded kernel input is bit-equal to its producer's output. Excludes
// parameters, because their files hold the value after the step, and values that an operator changes in place.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "dump/dump_support.h"

namespace msdbg::testing {
namespace {

/// Operators that write to their inputs; a recording made afterwards has the new value.
bool updates_in_place(std::string_view op) {
  return op.starts_with("Assign") || op.starts_with("Apply") || op.find("Momentum") != std::string_view::npos;
}

struct EdgesCase {
  const char* dump;
  size_t edges;  ///< edges whose two ends were dumped
};

class Edges : public ::testing::TestWithParam<EdgesCase> {};

TEST_P(Edges, EveryInputIsItsProducersOutput) {
  auto session = open_data(GetParam().dump);
  size_t compared = 0;
  for (const GraphPtr& graph : session->graphs()) {
    for (int64_t step : session->steps(0, graph->id())) {
      for (const Node& node : graph->nodes()) {
        for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
          const Edge producer = graph->effective_producer(node.id, slot);
          if (producer.node == kNoNode || updates_in_place(node.op)) continue;
          const Node& from = graph->node(producer.node);
          if (from.kind != NodeKind::kOperator || updates_in_place(from.op)) continue;
          const uint32_t turns = session->executions(0, graph->id(), step, node.id);
          for (uint32_t turn = 0; turn < turns; ++turn) {
            const TensorId input{0, graph->id(), step, turn, node.id, {Io::kInput, slot}};
            const TensorId output{0, graph->id(), step, turn, producer.node, {Io::kOutput, producer.slot}};
            const Result<TensorPtr> a = session->load(input), b = session->load(output);
            if (!a || !b) continue;
            ++compared;
            ASSERT_EQ((*a)->bytes().size(), (*b)->bytes().size()) << session->tensor_name(input);
            EXPECT_EQ(std::memcmp((*a)->bytes().data(), (*b)->bytes().data(), (*a)->bytes().size()), 0)
                << GetParam().dump << " step " << step << ": " << session->tensor_name(input) << " is not "
                << session->tensor_name(output);
          }
        }
      }
    }
  }
  EXPECT_EQ(compared, GetParam().edges);
}

INSTANTIATE_TEST_SUITE_P(Dumps, Edges,
                         ::testing::Values(EdgesCase{"lenet-2.7.1-ok", 141}, EdgesCase{"lenet-2.7.1-lognan", 100},
                                           EdgesCase{"lenet-2.7.1-explode", 615}, EdgesCase{"lenet-2.7.1-eval", 124},
                                           EdgesCase{"lenet-2.0.0-ok", 80}, EdgesCase{"lenet-2.0.0-filter", 120},
                                           EdgesCase{"lenet-1.5.0-ok", 94}, EdgesCase{"two-1.5.0", 3},
                                           EdgesCase{"two-2.0.0", 3}, EdgesCase{"two-2.7.1", 3},
                                           EdgesCase{"types-1.5.0", 12}, EdgesCase{"types-2.0.0", 18},
                                           EdgesCase{"types-2.7.1", 28}, EdgesCase{"long-1.5.0", 17},
                                           EdgesCase{"long-2.0.0", 15}, EdgesCase{"long-2.7.1", 17},
                                           EdgesCase{"control-2.0.0", 4}, EdgesCase{"control-2.7.1", 10}),
                         [](const auto& made) {
                           std::string name = made.param.dump;
                           for (char& c : name) c = isalnum(c) ? c : '_';
                           return name;
                         });

TEST(JoinData, NoPairingOfTheRealDumpsIsUncertain) {
  for (const char* name : {"lenet-2.7.1-ok", "lenet-2.7.1-eval", "lenet-2.0.0-ok", "lenet-1.5.0-ok", "types-2.7.1",
                           "two-2.7.1", "long-2.7.1", "control-2.7.1"}) {
    auto session = open_data(name);
    for (int64_t step : session->steps()) {
      for (const TensorId& id : all_tensors(*session, step)) {
        EXPECT_EQ(session->describe(id)->note, "") << name << " " << session->tensor_name(id);
      }
    }
  }
}

}  // namespace
}  // namespace msdbg::testing
