// Ranks that run the same calls with other numbers, leave out calls in front of an update, load an older checkpoint, or number their
// collectives otherwise.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "msprobe/msprobe_support.h"

namespace msdbg::testing {
namespace {

using Texts = std::vector<std::string>;

std::string number_entry(double value, const std::string& type = "float") {
  return R"({"type": ")" + type + R"(", "value": )" + std::to_string(value) + "}";
}

/// What one rank ran in one step.
class RankTable {
 public:
  explicit RankTable(int rank, int step) : own_(std::to_string(10 * rank + step + 1)) {}

  /// A value of the rank and step.
  std::string own(const std::string& shape = "[4]") const { return tensor_entry(shape, own_, "-" + own_); }
  /// The module is that of an optimizer's call: "optimizer".
  RankTable& call(const std::string& name, const std::string& inputs, const std::string& outputs, const std::string& in = "",
              const std::string& kwargs = "") {
    add(name, R"({"input_args": [)" + inputs + R"(], "input_kwargs": {)" + kwargs + R"(}, "output": [)" + outputs + "]}", in);
    return *this;
  }
  RankTable& weight(double max) {
    const std::string text = std::to_string(max);
    const std::string tensor = tensor_entry("[4]", text, "-" + text, R"(, "requires_grad": true)");
    const std::string end = R"(], "parameters": {"weight": )" + tensor + "}}";
    add("Module.fc.Linear.forward.0", R"({"input_args": [)" + own() + R"(], "input_kwargs": {}, "output": [)" + own() + end, "");
    return *this;
  }
  void put(WrittenDump& dump, int rank, int step) const {
    const std::string folder = "step" + std::to_string(step) + "/rank" + std::to_string(rank);
    dump.table(folder, calls_);
    dump.put(folder + "/construct.json", "{" + construct_ + "}");
  }

 private:
  void add(const std::string& name, const std::string& text, const std::string& in) {
    calls_ += (calls_.empty() ? "\"" : ", \"") + name + "\": " + text;
    construct_ += (construct_.empty() ? "\"" : ", \"") + name + "\": " + (in.empty() ? "null" : "\"" + in + "\"");
  }
  std::string own_, calls_, construct_;
};

/// Three steps on `ranks` ranks.
Texts differences_of(const std::function<void(RankTable&, int rank, int step)>& program, int ranks = 3, int steps = 3) {
  WrittenDump dump;
  for (int step = 0; step < steps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      RankTable table(rank, step);
      program(table, rank, step);
      table.put(dump, rank, step);
    }
  }
  return rank_differences(dump);
}

// ---- numbers of the network ----

Texts with_epsilon(const std::function<double(int rank, int step)>& epsilon, int ranks = 3, const std::string& shape_of_1 = "[4]") {
  return differences_of(
      [&](RankTable& table, int rank, int step) {
        const std::string input = table.own(rank == 1 ? shape_of_1 : "[4]");
        const std::string shape = R"([{"type": "int", "value": 4}])";
        const std::string rest = table.own() + ", " + table.own() + ", " + number_entry(epsilon(rank, step));
        table.call("Functional.layer_norm.0.forward", input + ", " + shape + ", " + rest, input);
      },
      ranks);
}

TEST(ReplicaNumbers, EqualOnesAreNoDifference) {
  EXPECT_EQ(with_epsilon([](int, int) { return 0.5; }), Texts{});
}

TEST(ReplicaNumbers, ARankWithAnotherOne) {
  EXPECT_EQ(with_epsilon([](int rank, int) { return rank == 1 ? 0.25 : 0.5; }),
            Texts{"calls, 0: unlike ranks 0, 2, rank 1 ran layer_norm with eps = 0.25 instead of 0.5"});
}

TEST(ReplicaNumbers, ARankWithAnotherOneFromAStepOn) {
  EXPECT_EQ(with_epsilon([](int rank, int step) { return rank == 1 && step > 0 ? 0.25 : 0.5; }),
            Texts{"calls, 1: unlike ranks 0, 2, rank 1 ran layer_norm with eps = 0.25 instead of 0.5"});
}

TEST(ReplicaNumbers, OfTwoRanksNobodyCanTell) {
  EXPECT_EQ(with_epsilon([](int rank, int) { return rank == 1 ? 0.25 : 0.5; }, 2),
            Texts{"calls, 0: unlike rank 0, rank 1 ran layer_norm with eps = 0.25 instead of 0.5; nobody can tell which is wrong"});
}

TEST(ReplicaNumbers, OneThatChangesIsThatOfTheData) {
  EXPECT_EQ(with_epsilon([](int rank, int step) { return rank == 1 ? 0.25 : 0.5 + step; }), Texts{});
  EXPECT_EQ(with_epsilon([](int rank, int step) { return rank == 1 ? 0.25 + step : 0.5; }), Texts{});
  EXPECT_EQ(with_epsilon([](int rank, int step) { return rank == 1 && step == 1 ? 0.25 : 0.5; }), Texts{});
}

TEST(ReplicaNumbers, OneOfEachRankIsItsOwn) {
  EXPECT_EQ(with_epsilon([](int rank, int) { return 0.5 + rank; }), Texts{});
}

TEST(ReplicaNumbers, OneOfOtherShapesIsThatOfTheData) {
  EXPECT_EQ(with_epsilon([](int rank, int) { return rank == 1 ? 0.25 : 0.5; }, 3, "[8]"), Texts{});
}

/// The loss is divided by the number of batches, as each rank takes it to be.
Texts with_factor(double odd, const std::set<int>& without_weight = {}) {
  return differences_of([&](RankTable& table, int rank, int step) {
    if (!without_weight.contains(rank)) table.weight(1 + step);
    table.call("Tensor.div.0.forward", table.own() + ", " + number_entry(rank == 1 ? odd : 4), table.own());
  });
}

TEST(ReplicaNumbers, AFactorOfOneRank) {
  EXPECT_EQ(with_factor(4), Texts{});
  EXPECT_EQ(with_factor(2), Texts{"calls, 0: unlike ranks 0, 2, rank 1 ran div with input_args.1 = 2 instead of 4"});
}

TEST(ReplicaNumbers, RanksWithOtherWeightsMayHaveOtherFactors) { EXPECT_EQ(with_factor(2, {0}), Texts{}); }

// ---- calls in front of an update ----

/// Gradients are clipped, and the weight of rank 1 is another one from step 1 on.
Texts clipping(bool on_rank_1, double limit_of_1 = 1) {
  return differences_of([&](RankTable& table, int rank, int step) {
    const bool odd = rank == 1 && step > 0 && (!on_rank_1 || limit_of_1 != 1);
    table.weight(odd ? 7 + step : 1 + step);
    const std::string limit = number_entry(rank == 1 ? limit_of_1 : 1);
    if (rank != 1 || on_rank_1) table.call("Torch.clamp.0.forward", table.own() + ", " + limit, table.own(), "optimizer");
    table.call("Tensor.add_.0.forward", table.own() + ", " + table.own(), table.own(), "optimizer");
  });
}

TEST(ReplicaNumbers, ARankThatClipsNothing) {
  EXPECT_EQ(clipping(true), Texts{});
  EXPECT_EQ(clipping(false), Texts{"calls, 0: unlike ranks 0, 2, rank 1 ran no clamp"});
}

TEST(ReplicaNumbers, ARankThatClipsMore) {
  EXPECT_EQ(clipping(true, 0.5),
            Texts{"setting, 0: unlike ranks 0, 2, rank 1 ran the optimizer with input_args.1 of clamp = 0.5 instead of 1"});
}

// ---- an older checkpoint ----

TEST(ReplicaNumbers, ARankThatLoadsAnOlderCheckpoint) {
  const auto with = [](double in_step_3) {
    return differences_of(
        [&](RankTable& table, int rank, int step) {
          const double counter = rank == 1 && step == 3 ? 2 : 1 + step;
          table.weight(rank == 1 && step == 3 ? in_step_3 : 1 + step);
          table.call("Tensor.add_.0.forward", table.own() + ", " + number_entry(counter), table.own(), "optimizer");
        },
        3, 4);
  };
  const Texts older = with(2);
  ASSERT_EQ(older.size(), 1U);
  EXPECT_NE(older[0].find("value, 3: rank 1 differs from ranks 0, 2"), older[0].npos) << older[0];
  EXPECT_NE(older[0].find("rank 1 holds it as it was in step 1: it loaded an older checkpoint"), older[0].npos) << older[0];
  const Texts another = with(9);
  ASSERT_EQ(another.size(), 1U);
  EXPECT_EQ(another[0].find("checkpoint"), another[0].npos) << another[0];
}

// ---- an update that does not reach the others ----

TEST(ReplicaNumbers, ARankThatAloneMovesAWeight) {
  const auto with = [](bool others_move) {
    return differences_of([&](RankTable& table, int rank, int step) {
      table.weight(step == 0 ? 1 : rank == 1 ? 3 + step : others_move ? 1 + step : 1);
    });
  };
  const Texts alone = with(false), together = with(true);
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_NE(alone[0].find("; rank 1 alone moved it since step 0"), alone[0].npos) << alone[0];
  ASSERT_EQ(together.size(), 1U);
  EXPECT_EQ(together[0].find("alone"), together[0].npos) << together[0];
}

// ---- weights that come apart ----

/// Ranks that train by themselves for two steps, until they take over what all of them have on average.
Texts local_training(bool rank_1_takes_it_over) {
  return differences_of(
      [&](RankTable& table, int rank, int step) {
        const bool own = step % 2 == 1 || (rank == 1 && step > 0 && !rank_1_takes_it_over);
        table.weight(own ? 10 * step + rank + 1 : 1 + step);
        const std::string mean = tensor_entry("[4]", std::to_string(3 + step), "-1");
        table.call("Distributed.all_reduce.0.forward", table.own(), mean);
      },
      3, 4);
}

TEST(ReplicaNumbers, ARankThatDoesNotTakeOverTheMean) {
  EXPECT_EQ(local_training(true), Texts{});
  const Texts differences = local_training(false);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].find("value, 2: rank 1 differs from ranks 0, 2"), 0U) << differences[0];
}

TEST(ReplicaNumbers, RanksThatExchangeInPairsNeedNotBeEqual) {
  const Texts differences = differences_of(
      [](RankTable& table, int rank, int step) {
        const int other = step % 2 == 0 ? rank ^ 1 : rank ^ 2;
        const int pair = step % 2 == 1 ? rank / 2 : rank % 2;
        table.weight(step == 0 ? 1 : 10 * step + pair);
        const std::string end = R"(": {"type": "int", "value": )" + std::to_string(other) + "}";
        table.call("Distributed.isend.0.forward", table.own(), table.own(), "", "\"dst" + end);
        table.call("Distributed.irecv.0.forward", table.own(), table.own(), "", "\"src" + end);
      },
      4);
  EXPECT_EQ(differences, Texts{});
}

// ---- collectives ----

/// Two stages of a pipeline, ranks 0 and 2, and ranks 1 and 3. Each reduces its gradients, of which the second stage has one more, and all
/// ranks add up the norms.
Texts stages_differ(double norm_of_3) {
  return differences_of(
      [&](RankTable& table, int rank, int step) {
        const int stage = rank % 2;
        const std::string ranks = stage == 0 ? "[0, 2]" : "[1, 3]";
        const std::string name = R"(, "group_id": "g)" + std::to_string(stage) + "\"}";
        const std::string group = R"("group": {"type": "torch.ProcessGroup", "group_ranks": )" + ranks + name;
        int at = 0;
        for (; at < 2 + stage; ++at) {
          const std::string sum = std::to_string(100 * stage + 10 * at + step + 1);
          const std::string result = tensor_entry("[4]", sum, "-" + sum);
          table.call("Distributed.all_reduce." + std::to_string(at) + ".forward", table.own(), result, "", group);
        }
        const std::string norm = std::to_string(rank == 3 && step == 1 ? norm_of_3 : 7.0);
        table.call("Distributed.all_reduce." + std::to_string(at) + ".forward", table.own("[]"), tensor_entry("[]", norm, norm));
      },
      4);
}

TEST(ReplicaNumbers, CollectivesThatMeetMayHaveOtherNumbers) { EXPECT_EQ(stages_differ(7), Texts{}); }

TEST(ReplicaNumbers, CollectivesWithOtherNumbersAreCompared) {
  const Texts differences = stages_differ(8);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].find("collective, 1: rank 3 differs from ranks 0-2"), 0U) << differences[0];
}

}  // namespace
}  // namespace msdbg::testing
