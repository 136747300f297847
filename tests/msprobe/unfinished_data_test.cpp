// Steps in which ranks stopped: real dumps of msprobe without the calls behind some call.
#include "msdbg/unfinished.h"

#include <nlohmann/json.hpp>

#include "msprobe/msprobe_support.h"
#include "support/copy_dump.h"

namespace msdbg::testing {
namespace {

using Texts = std::vector<std::string>;

TEST(UnfinishedCalls, NoStepOfARealDumpIs) {
  size_t dumps = 0;
  for (const char* folder : {"/msprobe", "/ranks-more"}) {
    for (const auto& entry : std::filesystem::directory_iterator(MSDBG_TEST_DATA + std::string(folder))) {
      auto session = open_msprobe(entry.path(), {});
      if (!session.ok()) continue;
      ++dumps;
      EXPECT_EQ(unfinished_texts(**session, IntSet::all(), IntSet::all()), Texts{}) << entry.path();
    }
  }
  EXPECT_GT(dumps, 30u);
}

/// A dump of three ranks whose last step can be cut.
class CutDump {
 public:
  CutDump() {
    test::copy_dump(MSDBG_TEST_DATA "/ranks-more/ddp-26.2-flip-L1-loop", path());
  }
  std::filesystem::path path() const { return temp_.file("dump"); }
  /// Leaves nothing behind this call.
  void cut(int rank, const std::string& last) const {
    const std::filesystem::path file = path() / "step1" / ("rank" + std::to_string(rank)) / "dump.json";
    std::ifstream in(file);
    nlohmann::ordered_json table = nlohmann::ordered_json::parse(in), kept = nlohmann::ordered_json::object();
    for (const auto& [name, call] : table["data"].items()) {
      kept[name] = call;
      if (name == last) break;
    }
    table["data"] = kept;
    std::ofstream(file) << table;
  }
  Texts texts() const {
    auto session = open_msprobe(path(), {});
    EXPECT_TRUE(session.ok()) << session.status().message();
    return session.ok() ? unfinished_texts(**session, IntSet::all(), IntSet::all()) : Texts();
  }

 private:
  test::TempDir temp_;
};

TEST(UnfinishedCalls, NamesTheCallOfTheRankThatDied) {
  const CutDump dump;
  dump.cut(1, "Functional.relu.0.forward");
  for (const int rank : {0, 2}) dump.cut(rank, "Functional.conv2d.0.backward");  // where they wait for it
  EXPECT_EQ(dump.texts(), Texts{"step 1 is unfinished: rank 1 ends before Functional.linear.0.forward (ddp.py:33), after 2 of 12 operators"});
}

TEST(UnfinishedCalls, WithinABackwardPassOnlyWhereOthersGotFurther) {
  const CutDump dump;
  dump.cut(1, "Functional.cross_entropy.0.backward");
  EXPECT_EQ(dump.texts(), Texts{"step 1 is unfinished: rank 1 ends before Functional.linear.0.backward (ddp.py:33), after 5 of 12 operators"});
  for (const int rank : {0, 2}) dump.cut(rank, "Functional.cross_entropy.0.backward");
  EXPECT_EQ(dump.texts(), Texts{});
}

// A gradient that overflowed.
TEST(UnfinishedCalls, AStepMayLeaveOutItsUpdate) {
  const CutDump dump;
  for (const int rank : {0, 1, 2}) dump.cut(rank, "Functional.conv2d.0.backward");
  EXPECT_EQ(dump.texts(), Texts{});
}

}  // namespace
}  // namespace msdbg::testing
