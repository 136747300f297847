// Files of MindSpore 2.7.1 (corners.py wrote the small ones) and the forms of other releases, written here.
#include "msdbg/check.h"
#include "ckpt/ckpt_support.h"

namespace msdbg::test {
namespace {

using Open = CheckpointTest;
const std::vector<double> kTable = {-0.75, -0.5, -0.25, 0};

TEST_F(Open, BothFormatsOfTheSameWeightsHoldTheSameBits) {
  for (int k = 0; k <= 5; ++k) {
    const auto records = open(lenet("explode", k, ".ckpt")), tensors = open(lenet("explode", k, ".safetensors"));
    const auto diff = diff_parameters({records.get(), 0, 0, "a"}, {tensors.get(), 0, 0, "b"});
    ASSERT_TRUE(diff.ok());
    EXPECT_TRUE(diff->equal()) << k;
    EXPECT_EQ(diff->changes.size(), 8u);
  }
}

TEST_F(Open, ParametersAreWeightsOfOneStep) {
  const auto checkpoint = open(lenet("ok", 0, ".ckpt"));
  EXPECT_EQ(checkpoint->info().kind, SessionKind::kCheckpoint);
  EXPECT_EQ(checkpoint->steps(), std::vector<int64_t>{0});
  EXPECT_EQ(checkpoint->graphs()[0]->nodes().size(), 8u);
  EXPECT_EQ(Selector::parse("@weight")->resolve(checkpoint->graphs()).size(), 8u);
  EXPECT_EQ(Selector::parse("fc1")->resolve(checkpoint->graphs()).size(), 2u);
  const auto stats = checkpoint->stats(id_of(*checkpoint, "conv1.weight"));
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->count, 75u);
  EXPECT_NEAR(stats->abs_mean, 0.08428871152185215, 1e-15);
  EXPECT_NEAR(stats->l2_norm, 0.9234622516009475, 1e-14);
}

TEST_F(Open, AWatchpointHitsTheNaNOfTheLastExplodedCheckpoint) {
  Watchpoint watch;
  watch.id = 1;
  watch.on = *Selector::parse("@weight");
  watch.condition = *make_condition("tensor_overflow", {});
  const auto before = open(lenet("explode", 4, ".ckpt")), after = open(lenet("explode", 5, ".safetensors"));
  EXPECT_EQ(check(*before, std::span(&watch, 1), {})->hits.size(), 0u);
  const auto result = check(*after, std::span(&watch, 1), {});
  ASSERT_EQ(result->hits.size(), 8u);
  EXPECT_EQ(result->hits[0].stats.nan_count, result->hits[0].stats.count);
}

TEST_F(Open, EveryElementTypeIsRead) {
  for (const char* file : {"types.ckpt", "types.safetensors"}) {
    const auto checkpoint = open(corner(file));
    EXPECT_EQ(checkpoint->facts().problems.size(), 0u);
    for (const char* name : {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"}) {
      EXPECT_EQ(values(*checkpoint, name), (std::vector<double>{0, 1, 2, 3})) << file << " " << name;
      EXPECT_EQ(info(*checkpoint, name).dtype, dtype_from_name(name)) << file;
    }
    EXPECT_EQ(values(*checkpoint, "bool"), (std::vector<double>{0, 1, 1, 1}));
    EXPECT_EQ(values(*checkpoint, "bfloat16"), (std::vector<double>{0, 1, -2, 3.140625}));
    EXPECT_EQ(info(*checkpoint, "scalar").shape, Shape{});
    EXPECT_EQ(values(*checkpoint, "scalar"), std::vector<double>{2.5});
  }
}

TEST_F(Open, TheCrcOfBothFormatsIsCompared) {
  EXPECT_EQ(open(corner("crc.ckpt"))->facts().crc, CrcState::kMatches);
  EXPECT_EQ(open(corner("crc.safetensors"))->facts().crc, CrcState::kMatches);
  EXPECT_EQ(open(corner("plain.ckpt"))->facts().crc, CrcState::kNone);
}

TEST_F(Open, EncryptedFilesOpenWithTheirKeyAsTextOrDigits) {
  const std::string text = "0123456789ABCDEFfedcba9876543210";
  const std::string digits = "3031323334353637383941424344454666656463626139383736353433323130";
  for (const std::string& key : {text, digits}) {
    EXPECT_EQ(values(*open(corner("gcm.ckpt"), key), "table"), kTable);
    EXPECT_EQ(values(*open(corner("cbc.ckpt"), key), "table"), kTable);
  }
  for (const std::string& key : {text.substr(0, 16), digits.substr(0, 32)}) {
    EXPECT_EQ(values(*open(corner("gcm16.ckpt"), key), "table"), kTable);
    EXPECT_EQ(values(*open(corner("sm4.ckpt"), key), "table"), kTable);
  }
  EXPECT_EQ(open(corner("cbc.ckpt"), text)->facts().cipher, "AES-CBC");
}

TEST_F(Open, KeysComeFromFilesAndTheEnvironment) {
  CheckpointOptions options;
  const std::string path = write("30313233343536373839414243444546\n", "key");
  ASSERT_TRUE(read_checkpoint_key("@" + path, &options).ok());
  EXPECT_EQ(options.key, "0123456789ABCDEF");
  ::setenv("MSDBG_TEST_KEY", "0123456789ABCDEF", 1);
  ASSERT_TRUE(read_checkpoint_key("env:MSDBG_TEST_KEY", &options).ok());
  EXPECT_EQ(options.key, "0123456789ABCDEF");
  EXPECT_EQ(read_checkpoint_key("secret", &options).message().find("secret"), std::string::npos);
  EXPECT_FALSE(read_checkpoint_key("env:MSDBG_NO_SUCH_KEY", &options).ok());
}

TEST_F(Open, StringsAmongTheParametersAreTextAndNumbersAreScalars) {
  const auto checkpoint = open(corner("texts.ckpt"));
  ASSERT_EQ(checkpoint->facts().texts.size(), 1u);
  EXPECT_EQ(checkpoint->facts().texts[0], (std::pair<std::string, std::string>{"note", "gr\u00fc\u00dfe"}));
  EXPECT_EQ(values(*checkpoint, "epoch_num"), std::vector<double>{3});
}

TEST_F(Open, PiecesOfALargeParameterAreOne) {
  const std::vector<float> all = {1, 2, 3, 4, 5, 6};
  const std::string bytes = bytes_of(all);
  // A cut inside an element, as in raw slices.
  const auto checkpoint = open(
      write(record("w", "Float32", {2, 3}, bytes.substr(0, 10)) + record("w", "Float32", {2, 3}, bytes.substr(10)) + floats("b", {7})));
  EXPECT_EQ(names(*checkpoint), (std::vector<std::string>{"w", "b"}));
  EXPECT_EQ(values(*checkpoint, "w"), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_CONTAINS(info(*checkpoint, "w").note, "2 pieces");
}

TEST_F(Open, ALaterRecordOfANameCountsAndIsSaid) {
  const auto checkpoint = open(write(floats("w", {1, 2}) + floats("b", {3}) + floats("w", {4, 5})));
  EXPECT_EQ(values(*checkpoint, "w"), (std::vector<double>{4, 5}));
  EXPECT_CONTAINS(problems(*checkpoint), "'w' is stored twice");
}

TEST_F(Open, ScalarsOfOldWritersHaveTheDimensionsOfAnEmptyVector) {
  const auto checkpoint = open(write(record("step", "Int64", {0}, bytes_of<int64_t>({9})) + record("none", "Float32", {0}, "")));
  EXPECT_EQ(info(*checkpoint, "step").shape, Shape{});
  EXPECT_EQ(values(*checkpoint, "step"), std::vector<double>{9});
  EXPECT_EQ(info(*checkpoint, "none").shape, Shape{0});
}

TEST_F(Open, SlicesOfAMapParameterJoinAlongTheirFirstAxis) {
  checkpoint::Checkpoint message;
  for (const int64_t first : {1, 3}) {
    auto* value = message.add_value();
    value->set_tag("map");
    const std::vector<std::pair<std::string, std::string>> parts = {
        {"int64", bytes_of<int64_t>({first, first + 1})}, {"float32", bytes_of<float>({0.5f, 1.5f})}, {"int32", bytes_of<int32_t>({1, 1})}};
    for (const auto& [type, content] : parts) {
      auto* tensor = value->mutable_maptensor()->add_tensor();
      tensor->add_dims(2);
      tensor->set_tensor_type(type);
      tensor->set_tensor_content(content);
    }
  }
  const auto checkpoint = open(write(message.SerializeAsString() + floats("w", {1})));
  EXPECT_EQ(names(*checkpoint), (std::vector<std::string>{"map.key", "map.value", "map.status", "w"}));
  EXPECT_EQ(values(*checkpoint, "map.key"), (std::vector<double>{1, 2, 3, 4}));
}

TEST_F(Open, TheStateOfAnOptimizerNamesTheWeightsItUpdates) {
  const auto checkpoint = open(write(floats("table", {1, 2}) + floats("moments.table", {0, 0}) + floats("moving_mean", {0, 0})));
  const auto weights = Selector::parse("@weight")->resolve(checkpoint->graphs());
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(checkpoint->graphs()[0]->node(weights[0].node).name, "table");
}

}  // namespace
}  // namespace msdbg::test
