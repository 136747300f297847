// Elements of real tensor files: those of every type, as numpy counts them.
#include <cmath>

#include "msprobe/expected.h"

namespace msdbg::testing {
namespace {

class ElementsData : public ::testing::TestWithParam<const char*> {};

TEST_P(ElementsData, AreThoseOfTheFiles) {
  const std::unique_ptr<Session> session = open_real(GetParam());
  ASSERT_NE(session, nullptr);
  const nlohmann::json expected = expected_of(std::string(GetParam()) + ".tensors");
  TensorQuery query;
  query.inputs = true;
  uint64_t compared = 0;
  for (const TensorId& id : session->tensors(query)) {
    const TensorInfo info = session->identify(id);
    const std::string file = std::filesystem::path(info.source).filename();
    const auto wanted = expected.find("step" + std::to_string(id.step) + "/" + file);
    if (wanted == expected.end()) continue;
    SCOPED_TRACE(file);
    const Result<OpenTensor> opened = session->open(id);
    ASSERT_TRUE(opened.ok());
    EXPECT_EQ(opened->info.shape, (*wanted)["shape"].get<Shape>());
    const Result<Stats> stats = session->stats(id);
    if (!opened->reader) continue;  // complex
    ASSERT_TRUE(stats.ok()) << stats.status().message();
    ++compared;
    const auto count = [&](const char* key) { return (*wanted)[key].get<uint64_t>(); };
    EXPECT_EQ(stats->nan_count, count("nan"));
    EXPECT_EQ(stats->pos_inf_count, count("pos_inf"));
    EXPECT_EQ(stats->neg_inf_count, count("neg_inf"));
    EXPECT_EQ(stats->zero_count, count("zero"));
    if ((*wanted)["max"].is_number() && stats->nan_count + stats->inf_count() == 0 && stats->count > 0) {
      EXPECT_EQ(stats->max, (*wanted)["max"].get<double>());
      EXPECT_EQ(stats->min, (*wanted)["min"].get<double>());
    }
  }
  EXPECT_GT(compared, 20u);
}

INSTANTIATE_TEST_SUITE_P(Real, ElementsData, ::testing::Values("26.2-torch-everytype", "26.2-ms-types"), test_name);

/// Where there are elements and a table, both say the same about NaN and Inf.
TEST(StatisticsData, SayOfEveryTensorWhatItsElementsSay) {
  uint64_t compared = 0;
  for (const char* name : {"26.2-torch-lenet-lognan", "26.2-torch-everytype", "26.2-ms-lenet-lognan", "1.3-torch-lenet-lognan-tensor"}) {
    const std::unique_ptr<Session> session = open_real(name);
    ASSERT_NE(session, nullptr);
    TensorQuery query;
    query.inputs = true;
    for (const TensorId& id : session->tensors(query)) {
      const Result<OpenTensor> opened = session->open(id);
      const std::optional<Stats> given = session->given_statistics(id);
      if (!opened.ok() || !opened->reader || !given) continue;
      SCOPED_TRACE(std::string(name) + " " + session->tensor_name(id));
      const Result<Stats> real = session->stats(id);
      ASSERT_TRUE(real.ok());
      ++compared;
      EXPECT_EQ(given->count, real->count);
      const auto same = [&](StatField field, auto value) {
        if (given->knows(field)) { EXPECT_EQ((*given).*value, (*real).*value) << field; }
      };
      same(kStatNan, &Stats::nan_count);
      same(kStatPosInf, &Stats::pos_inf_count);
      same(kStatNegInf, &Stats::neg_inf_count);
      same(kStatZero, &Stats::zero_count);
      same(kStatPos, &Stats::pos_count);
      same(kStatNeg, &Stats::neg_count);
      same(kStatDtypeMax, &Stats::dtype_max_count);
      const auto near = [&](StatField field, double Stats::*value, double tolerance) {
        if (!given->knows(field)) return;
        if (std::isnan((*real).*value)) {  // no finite element
          EXPECT_TRUE(std::isnan((*given).*value)) << field;
          return;
        }
        const double scale = std::max({1.0, std::abs(real->max), std::abs(real->min), std::abs((*real).*value)});
        EXPECT_NEAR((*given).*value, (*real).*value, tolerance * scale) << field;
      };
      near(kStatMin, &Stats::min, 0);
      near(kStatMax, &Stats::max, 0);
      // 16-bit types round their sums to 8 bits.
      near(kStatMean, &Stats::mean, 0.01);
      near(kStatAbsMean, &Stats::abs_mean, 0.01);
      near(kStatL2Norm, &Stats::l2_norm, 0.01);
      near(kStatStd, &Stats::std, 1e-6);
    }
  }
  EXPECT_GT(compared, 600u);
}

}  // namespace
}  // namespace msdbg::testing
