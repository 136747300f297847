// Forward calls that one rank ran otherwise than the others.
#include <string>
#include <vector>

#include "msprobe/msprobe_support.h"

namespace msdbg::testing {
namespace {

/// What a rank ran in a step: passes of a network with a dropout.
struct Passes {
  int number = 1;
  bool training = true;
  std::string type = "float32";
};

class Networks {
 public:
  void put(int step, int rank, const Passes& passes) {
    const std::string own = std::to_string(10 * rank + step + 1);
    std::string tensor = tensor_entry("[4]", own, "-" + own), calls, construct;
    tensor.replace(tensor.find("float32"), 7, passes.type);
    for (int pass = 0; pass < passes.number; ++pass) {
      const std::string at = "." + std::to_string(pass) + ".forward";
      const std::string training = passes.training ? "true" : "false";
      const std::string mode = R"(, {"type": "float", "value": 0.5}, {"type": "bool", "value": )" + training + "}";
      const std::string comma = pass == 0 ? "" : ", ";
      calls += comma + call_entry("Torch.relu" + at, tensor, tensor) + ", " + call_entry("Functional.dropout" + at, tensor + mode, tensor);
      construct += comma + "\"Torch.relu" + at + R"(": null, "Functional.dropout)" + at + R"(": null)";
    }
    const std::string folder = "step" + std::to_string(step) + "/rank" + std::to_string(rank);
    dump_.table(folder, calls);
    dump_.put(folder + "/construct.json", "{" + construct + "}");
  }
  std::vector<std::string> differences() const { return rank_differences(dump_); }

 private:
  WrittenDump dump_;
};

using Texts = std::vector<std::string>;

/// Three steps; rank 1 of three runs `odd` in the second one.
Texts found(const Passes& odd, const Passes& usual = {}, int ranks = 3, int at = 1) {
  Networks networks;
  for (int step = 0; step < 3; ++step) {
    for (int rank = 0; rank < ranks; ++rank) networks.put(step, rank, rank == 1 && step == at ? odd : usual);
  }
  return networks.differences();
}

TEST(ReplicaPrograms, EqualOnesAreNoDifference) { EXPECT_EQ(found({}), Texts{}); }

TEST(ReplicaPrograms, ARankThatIsNotTrained) {
  EXPECT_EQ(found({1, false}), Texts{"calls, 1: unlike ranks 0, 2, rank 1 ran dropout with training = false instead of true"});
}

TEST(ReplicaPrograms, ARankThatForgetsABatch) {
  EXPECT_EQ(found({2}, {3}), Texts{"calls, 1: unlike ranks 0, 2, rank 1 ran 2 passes instead of 3"});
}

TEST(ReplicaPrograms, TheLastBatchesOfAnEpochMayBeFewer) { EXPECT_EQ(found({2}, {3}, 3, 2), Texts{}); }

TEST(ReplicaPrograms, ARankThatEvaluatesInBetween) { EXPECT_EQ(found({4}, {3}), Texts{}); }

TEST(ReplicaPrograms, OfTwoRanksTheOtherStepsTellWhichForgets) {
  EXPECT_EQ(found({2}, {3}, 2), Texts{"calls, 1: unlike rank 0, rank 1 ran 2 passes instead of 3"});
}

TEST(ReplicaPrograms, ARankWithAnotherType) {
  Networks networks;
  for (int rank = 0; rank < 3; ++rank) networks.put(0, rank, {1, true, rank == 1 ? "float16" : "bfloat16"});
  EXPECT_EQ(networks.differences(), Texts{"calls, 0: unlike ranks 0, 2, rank 1 ran relu in float16 instead of bfloat16"});
}

TEST(ReplicaPrograms, TwoKindsOfRanksAreNoFault) {
  Networks networks;
  for (int rank = 0; rank < 4; ++rank) networks.put(0, rank, {1, true, rank % 2 == 1 ? "float16" : "bfloat16"});
  EXPECT_EQ(networks.differences(), Texts{});
}

}  // namespace
}  // namespace msdbg::testing
