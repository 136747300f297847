// Two alternating networks, element types, over-long names.
#include <gtest/gtest.h>

#include <set>

#include "dump/dump_support.h"
#include "support/copy_dump.h"

namespace msdbg::testing {
namespace {

TEST(TwoData, OlderReleasesCountStepsOverAllNetworks) {
  for (const char* name : {"two-1.5.0", "two-2.0.0"}) {
    auto session = open_data(name);
    EXPECT_EQ(session->steps(0, 0), (std::vector<int64_t>{0, 2, 4})) << name;
    EXPECT_EQ(session->steps(0, 1), (std::vector<int64_t>{1, 3, 5})) << name;
    EXPECT_EQ(session->steps(0, 2), (std::vector<int64_t>{6})) << name;
    for (int64_t step : {2, 4}) {
      const TensorId id = id_of(*session, "Default/MatMul-op2", step, 0, 0);
      EXPECT_EQ(session->previous(id, nullptr)->step, step - 2) << name;
    }
  }
}

TEST(TwoData, NewerReleasesCountEachNetwork) {
  auto session = open_data("two-2.7.1");
  EXPECT_EQ(session->steps(0, 0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(session->steps(0, 1), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(session->steps(0, 2), (std::vector<int64_t>{3}));
}

TEST(TwoData, AFileOfAnotherNumberBelongsToTheOnlyNodeThereIs) {
  auto session = open_data("two-2.7.1");
  const TensorId id = id_of(*session, "Default/MatMul-op0", 3, 0, 2);
  EXPECT_EQ(session->node(id).name, "Default/MatMul-op0");
  const Result<TensorInfo> info = session->describe(id);
  ASSERT_TRUE(info.ok());
  EXPECT_NE(info->source.find("/2/3/MatMul.Default_MatMul-op1."), std::string::npos) << info->source;
  EXPECT_EQ(info->shape, (Shape{3, 3}));
  EXPECT_EQ(info->note, "");
}

TEST(TwoData, ResultsAreThosePrintedByTheRun) {
  auto session = open_data("two-2.7.1");
  const auto sum = [&](int graph, std::string_view op, int64_t step) {
    double total = 0;
    for (const Node& node : session->graph(0, graph)->nodes()) {
      if (node.op != op) continue;
      for (double element : elements(*session, TensorId{0, graph, step, 0, node.id, {}})) total += element;
    }
    return total;
  };
  EXPECT_EQ(sum(0, "MatMul", 0), 22);
  EXPECT_EQ(sum(0, "MatMul", 1), 54);
  EXPECT_EQ(sum(0, "MatMul", 2), 102);
  EXPECT_EQ(sum(1, "Add", 1), 18);
  EXPECT_EQ(sum(1, "Add", 2), 32);
  EXPECT_EQ(sum(1, "Add", 3), 50);
  EXPECT_EQ(sum(2, "MatMul", 3), 486);
}

TEST(TwoData, AHistoryThatMissesStepsIsNotUsed) {
  auto session = open_data("two-2.7.1");
  EXPECT_TRUE(reports(*session, "execution_order", "graph 0 was dumped in 2 steps"));
  bool missing = true;
  EXPECT_EQ(session->previous(id_of(*session, "Default/MatMul-op0", 2, 0, 0), &missing)->step, 1);
  EXPECT_FALSE(missing);
}

TEST(TwoData, EachFileCutInHalfIsReportedAndTheOthersAreRead) {
  TempDir dir;
  test::copy_dump(data_path("dumps/two-2.7.1"), dir.path());
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path())) {
    if (entry.path().extension() != ".npy" && entry.path().extension() != ".pb") continue;
    ++files;
    std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_all);
    const std::string whole = [&] {
      std::ifstream in(entry.path(), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    std::filesystem::resize_file(entry.path(), whole.size() / 2);
    auto session = open(dir.path());
    size_t unreadable = 0, errors = 0;
    for (int64_t step : session->steps()) {
      for (const TensorId& id : all_tensors(*session, step)) unreadable += problem_of(*session, id).ok() ? 0 : 1;
    }
    for (const Problem& problem : session->inspect().problems) errors += problem.severity == Severity::kError ? 1 : 0;
    EXPECT_EQ(unreadable, entry.path().extension() == ".npy" ? 1u : 0u) << entry.path();
    EXPECT_EQ(errors, 1u) << entry.path();
    std::ofstream(entry.path(), std::ios::binary) << whole;
  }
  EXPECT_EQ(files, 57u);
}

TEST(TypesData, EveryElementTypeIsReadAndEqualsWhatWasCast) {
  const std::map<std::string, size_t> wanted = {{"types-1.5.0", 8}, {"types-2.0.0", 8}, {"types-2.7.1", 13}};
  for (const auto& [name, least] : wanted) {
    auto session = open_data(name);
    std::set<DType> seen;
    for (const TensorId& id : all_tensors(*session, 0)) {
      const Result<TensorInfo> info = session->describe(id);
      ASSERT_TRUE(info.ok());
      EXPECT_TRUE(info->problem.ok()) << info->source << ": " << info->problem.message();
      seen.insert(info->dtype);
      if (session->node(id).op != "Cast" || id.slot.io != Io::kOutput) continue;
      TensorId input = id;
      input.slot = {Io::kInput, 0};
      const std::vector<double> from = elements(*session, input), to = elements(*session, id);
      if (info->dtype == DType::kBool) {
        for (size_t i = 0; i < to.size(); ++i) EXPECT_EQ(to[i], from[i] != 0 ? 1 : 0);
      } else if (is_float(info->dtype)) {
        ASSERT_EQ(from.size(), to.size());
        for (size_t i = 0; i < to.size(); ++i) EXPECT_NEAR(to[i], from[i], 0.01 * std::abs(from[i]));
      } else {
        ASSERT_EQ(from.size(), to.size());
        for (size_t i = 0; i < to.size(); ++i) EXPECT_EQ(to[i], std::trunc(from[i]));
      }
    }
    EXPECT_GE(seen.size(), least) << name;
  }
}

TEST(TypesData, ScalarsHaveNoDimensionAndOneElement) {
  for (const char* name : {"types-1.5.0", "types-2.0.0", "types-2.7.1"}) {
    auto session = open_data(name);
    const TensorId scalar = id_of(*session, "scalar", 0);
    EXPECT_EQ(session->describe(scalar)->shape, Shape{}) << name;
    EXPECT_EQ(elements(*session, scalar), (std::vector<double>{2.5})) << name;
  }
}

TEST(TypesData, SeveralOutputsAreSlots) {
  for (const char* name : {"types-1.5.0", "types-2.0.0", "types-2.7.1"}) {
    auto session = open_data(name);
    std::map<std::string, size_t> outputs;
    for (const TensorId& id : all_tensors(*session, 0, false)) ++outputs[session->node(id).op];
    EXPECT_EQ(outputs["Split"], 3u) << name;
    EXPECT_EQ(outputs["TopK"], 2u) << name;
  }
}

TEST(TypesData, AParameterWithDotSlashAndBlankIsFound) {
  for (const char* name : {"types-1.5.0", "types-2.0.0", "types-2.7.1"}) {
    auto session = open_data(name);
    const TensorId id = id_of(*session, "a.b/c d", 0);
    EXPECT_EQ(session->node(id).name, "a.b/c d") << name;
    EXPECT_EQ(elements(*session, id), (std::vector<double>{0, 1, 2, 3, 4, 5})) << name;
  }
  auto oldest = open_data("types-1.5.0");
  EXPECT_NE(oldest->describe(id_of(*oldest, "a.b/c d", 0))->source.find("/Parameter.a.b/c d.0.0."), std::string::npos);
}

TEST(TypesData, TheCastsOfTheFilesAreThoseOfTheGraphInOrder) {
  auto session = open_data("types-2.7.1");
  std::map<std::string, std::string> files;
  for (const TensorId& id : all_tensors(*session, 0, false)) {
    if (session->node(id).op != "Cast") continue;
    const std::string source = session->describe(id)->source;
    const size_t at = source.find("Cast-op");
    files[session->node(id).name] = source.substr(at, source.find('.', at) - at);
  }
  ASSERT_EQ(files.size(), 24u);
  for (int k = 0; k < 24; ++k) {
    EXPECT_EQ(files["Default/Cast-op" + std::to_string(23 + k)], "Cast-op" + std::to_string(k));
  }
}

TEST(TypesData, Bfloat16IsReadUnderTheWritersOwnDescription) {
  auto session = open_data("types-2.7.1");
  size_t found = 0;
  for (const TensorId& id : all_tensors(*session, 0, false)) {
    const Result<TensorInfo> info = session->describe(id);
    if (info->dtype != DType::kBFloat16) continue;
    std::ifstream file(info->source, std::ios::binary);
    std::string head(128, '\0');
    file.read(head.data(), 128);
    EXPECT_NE(head.find("'<E2'"), std::string::npos);
    ++found;
  }
  EXPECT_EQ(found, 1u);
}

TEST(LongData, NamesOfMappingCsvAreUsed) {
  auto session = open_data("long-2.7.1");
  size_t renamed = 0;
  for (const TensorId& id : all_tensors(*session, 0)) {
    const std::string file = session->describe(id)->source;
    const std::string base = file.substr(file.rfind('/') + 1);
    if (std::all_of(base.begin(), base.end() - 4, [](char c) { return c >= '0' && c <= '9'; })) {
      ++renamed;
      EXPECT_GT(session->node(id).name.size(), 100u);
      EXPECT_FALSE(elements(*session, id).empty());
    }
  }
  EXPECT_EQ(renamed, 43u);
}

TEST(LongData, MappingLinesWithoutAFileAreReported) {
  auto session = open_data("long-2.0.0");
  EXPECT_TRUE(reports(*session, "mapping.csv", "2 lines name files that do not exist"));
  size_t parameters_without_file = 0;
  for (const Node& node : session->graphs()[0]->nodes()) {
    if (node.kind != NodeKind::kParameter) continue;
    parameters_without_file += session->describe({0, 0, 0, 0, node.id, {}}).ok() ? 0 : 1;
  }
  EXPECT_GE(parameters_without_file, 2u);
}

TEST(LongData, TheOldestReleaseLeavesLongNamesOut) {
  auto session = open_data("long-1.5.0");
  for (const Node& node : session->graphs()[0]->nodes()) {
    if (node.kind != NodeKind::kParameter || node.name.size() < 220) continue;
    const Result<TensorInfo> info = session->describe({0, 0, 0, 0, node.id, {}});
    ASSERT_FALSE(info.ok());
    EXPECT_EQ(info.status().code(), Code::kNotFound);
  }
  EXPECT_FALSE(names(*session, 0).empty());
}

}  // namespace
}  // namespace msdbg::testing
