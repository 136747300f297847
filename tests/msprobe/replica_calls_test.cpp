// Optimizers that were recorded call by call, where no weight shows what differs between the ranks.
#include <string>
#include <vector>

#include "msprobe/msprobe_support.h"

namespace msdbg::testing {
namespace {

/// The calls of a rank's optimizer in a step: each moves a weight by `rates[i]` times a gradient. Weights and gradients are those of the
/// rank.
struct Update {
  std::vector<std::string> rates;
  int rank = 0, step = 0;
};

class Trainings {
 public:
  void put(const Update& update) {
    const std::string own = std::to_string(10 * update.rank + update.step + 1);
    const std::string tensor = tensor_entry("[4]", own, "-" + own);
    std::string calls = call_entry("Torch.relu.0.forward", tensor, tensor), construct = R"("Torch.relu.0.forward": null)";
    for (size_t i = 0; i < update.rates.size(); ++i) {
      const std::string name = "Tensor.add_." + std::to_string(i) + ".forward";
      calls += ", \"" + name + R"(": {"input_args": [)" + tensor + ", " + tensor + R"(], "input_kwargs": {"alpha": {"type": "float", "value": )" +
               update.rates[i] + R"(}}, "output": [)" + tensor + "]}";
      construct += ", \"" + name + R"(": "optimizer")";
    }
    const std::string folder = "step" + std::to_string(update.step) + "/rank" + std::to_string(update.rank);
    dump_.table(folder, calls);
    dump_.put(folder + "/construct.json", "{" + construct + "}");
  }
  std::vector<std::string> differences() const { return rank_differences(dump_); }

 private:
  WrittenDump dump_;
};

using Texts = std::vector<std::string>;
const std::vector<std::string> kUsual = {"-0.1", "-0.1"};

/// Three ranks, three steps; `rates` of rank 1.
Texts found(const std::vector<std::vector<std::string>>& rates, const std::vector<std::string>& usual = kUsual) {
  Trainings trainings;
  for (int step = 0; step < 3; ++step) {
    for (int rank = 0; rank < 3; ++rank) trainings.put({rank == 1 ? rates[static_cast<size_t>(step)] : usual, rank, step});
  }
  return trainings.differences();
}

TEST(ReplicaCalls, EqualNumbersAreNoDifference) { EXPECT_EQ(found({kUsual, kUsual, kUsual}), Texts{}); }

TEST(ReplicaCalls, ARankWithAnotherRate) {
  const std::vector<std::string> other = {"-0.2", "-0.2"};
  EXPECT_EQ(found({kUsual, other, other}),
            Texts{"setting, 1: unlike ranks 0, 2, rank 1 ran the optimizer with alpha of add_ = -0.2 instead of -0.1"});
}

TEST(ReplicaCalls, ARankThatLeavesOutAnUpdate) {
  EXPECT_EQ(found({kUsual, {}, kUsual}), Texts{"no_update, 1: unlike ranks 0, 2, rank 1 ran no optimizer"});
}

TEST(ReplicaCalls, ARankThatNeverRunsAnOptimizerMayHaveNothingToTrain) { EXPECT_EQ(found({{}, {}, {}}), Texts{}); }

TEST(ReplicaCalls, RatesOfSeveralGroupsOfParametersAreNotCompared) {
  EXPECT_EQ(found({{"-0.1", "-0.3"}, {"-0.1", "-0.3"}, {"-0.1", "-0.3"}}), Texts{});
}

TEST(ReplicaCalls, ARankThatUpdatesOtherParametersMayHaveOtherRates) {
  EXPECT_EQ(found({{"-0.3"}, {"-0.3"}, {"-0.3"}}), Texts{});  // as where each rank updates a part of them
}

TEST(ReplicaCalls, OfTwoRanksNobodyKnowsTheOddOne) {
  Trainings trainings;
  for (int rank = 0; rank < 2; ++rank) trainings.put({rank == 1 ? std::vector<std::string>{"-0.2", "-0.2"} : kUsual, rank, 0});
  EXPECT_EQ(trainings.differences(), Texts{"setting, 0: unlike rank 0, rank 1 ran the optimizer with alpha of add_ = -0.2 instead of -0.1; "
                                           "nobody can tell which is wrong"});
}

}  // namespace
}  // namespace msdbg::testing
