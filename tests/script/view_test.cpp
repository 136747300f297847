// Views of elements: NaN of every payload, and memory that lives as long as anything can read it.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>

#include "script/support.h"

namespace msdbg::testing {
namespace {

template <typename Word>
TensorPtr tensor_of_words(DType dtype, const std::vector<Word>& words) {
  std::vector<std::byte> bytes(words.size() * sizeof(Word));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return TensorBuffer::create(dtype, {static_cast<int64_t>(words.size())}, std::move(bytes)).value();
}

std::vector<uint16_t> all_words() {
  std::vector<uint16_t> words(65536);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint16_t>(i);
  return words;
}

// NaN with random signs and payloads, including those that LuaJIT would mistake for tables and nil; every tenth value is a number
// or an infinity.
template <typename Word>
std::vector<Word> random_words(Word exponent, std::initializer_list<Word> known) {
  std::mt19937_64 random(20261122);
  std::vector<Word> words(known);
  while (words.size() < 100000) {
    Word word = static_cast<Word>(random());
    if (words.size() % 10 != 0) word |= exponent;
    if (words.size() % 100 == 10) word = exponent | (word & (Word{1} << (8 * sizeof(Word) - 1)));
    words.push_back(word);
  }
  return words;
}

class ViewTest : public ScriptTest {
 protected:
  void SetUp() override {
    ScriptTest::SetUp();
    auto session = std::make_unique<FakeSession>(fake_graph(
        {{"half", "Parameter"}, {"brain", "Parameter"}, {"single", "Parameter"}, {"double", "Parameter"}, {"long", "Parameter"}}));
    session->put("half", 0, tensor_of_words(DType::kFloat16, all_words()));
    session->put("brain", 0, tensor_of_words(DType::kBFloat16, all_words()));
    session->put("single", 0, tensor_of_words(DType::kFloat32, random_words<uint32_t>(0x7F800000, {0xFFFFFFFF, 0xFFD10000, 0x7FC00000})));
    session->put("double", 0, tensor_of_words(DType::kFloat64, random_words<uint64_t>(0x7FF0000000000000, {
        0xFFFFFFFFFFFFFFFF, 0xFFFA000000000000, 0xFFFC800000000001, 0x7FF0000000000001, 0xFFF0000000000001, 0x8000000000000000})));
    session->put("long", 0, tensor_of_words<int64_t>(DType::kInt64, {-1, 0, INT64_MAX, INT64_MIN}));
    script->set_session(std::move(session));
  }
};

// Every path from an element to Lua; a value that is not a number would not even compare as one.
constexpr const char* kWays = R"(
local name, compiled = ...
if compiled == "compiled" then jit.on() else jit.off() end
jit.flush()
local t = s:tensor(name)
local v, wanted = t:view(), t.stats.nan_count
assert(wanted > 200, "the test has no NaN")

local seen, nan, sum = {}, 0, 0
for i = 0, v.n - 1 do
  local x = v[i]
  seen[i + 1] = x                 -- what a trace gives back when it ends
  if x ~= x then nan = nan + 1 else sum = sum + (x * 0 == 0 and 1 or 0) end
end
assert(nan == wanted, "loop: " .. nan .. " of " .. wanted)
assert(sum == t.stats.count - wanted - t.stats.pos_inf_count - t.stats.neg_inf_count, "finite: " .. sum)

local function check(list, from, what)
  for i = from, from + v.n - 1 do
    local x, want = list[i], seen[i - from + 1]
    assert(type(x) == "number", what .. " " .. i .. ": a " .. type(x))
    assert(x == want or x ~= x and want ~= want, what .. " " .. i)
  end
end
check(seen, 1, "view")
check(v:doubles(), 0, "doubles")
check(t:slice(":"):view(), 0, "slice")
check(require("msdbg.tensor_elements").doubles(v, 0, v.n), 0, "view.doubles")

local places, total = t:where(function(x) return x ~= x end)
assert(total == wanted and #places == wanted, "where: " .. total)
for _, place in ipairs(places) do assert(type(place.value) == "number" and place.value ~= place.value) end
assert(select(2, t:where("nan", { limit = 1 })) == wanted)
for _, place in ipairs(t:worst(100)) do assert(type(place.value) == "number" and place.value ~= place.value) end
check(t:eval("x"), 1, "eval")

local stats = require("msdbg.tensor_elements").statistics(v)
assert(stats.nan_count == wanted)
for _, field in ipairs { "min", "max", "mean", "abs_mean", "std", "l2_norm", "zero_percentage" } do
  assert(type(tonumber(stats[field])) == "number", field)
end
local pictures = require "msdbg.tensor_pictures"
assert(#pictures.heatmap(t, { ascii = true }) > 0 and #pictures.show(t, { rows = 3 }) > 0 and #pictures.hist(t, { ascii = true }) > 0)
local s2 = t:slice("0:100")
assert(#pictures.heatmap(s2, { ascii = true }) > 0)
collectgarbage()                  -- a value of a wrong type dies here at the latest
jit.on()
)";

class NanTest : public ViewTest, public ::testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(NanTest, OfEveryPayloadIsANumber) {
  const auto [name, compiled] = GetParam();
  const ScriptOutcome outcome = script->run_text(kWays, "@nan.lua", {name, compiled});
  EXPECT_EQ(outcome.error, "");
}

INSTANTIATE_TEST_SUITE_P(View, NanTest,
                         ::testing::Combine(::testing::Values("half", "brain", "single", "double"),
                                            ::testing::Values("interpreted", "compiled")),
                         [](const auto& test) { return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param); });

TEST_F(ViewTest, FieldsCannotBeChanged) {
  for (const char* field : {"n", "dtype", "shape", "data", "other", "[0]"}) {
    const std::string target = *field == '[' ? std::string("v") + field : std::string("v.") + field;
    EXPECT_TRUE(contains(failure("local v = s:tensor('long'):view() " + target + " = 1e12"), "cannot be assigned")) << field;
  }
  EXPECT_TRUE(contains(failure("getmetatable(s:tensor('long'):view()).__index = 1"), "attempt to index"));
}

TEST_F(ViewTest, IndexesThatAreNoElementsRaise) {
  run("local v = s:tensor('long'):view() assert(v.n == 4 and v[0] == -1 and v[2] == 2^63 and v.dtype == 'int64' and v.shape[1] == 4)");
  for (const char* index : {"4", "-1", "1e11", "1/0", "-1/0", "0/0"}) {
    EXPECT_TRUE(contains(failure(std::string("return s:tensor('long'):view()[") + index + "]"), "")) << index;
  }
  EXPECT_TRUE(contains(failure("return s:tensor('long'):view()[1e11]"), "is outside 0 to 3"));
  EXPECT_TRUE(contains(failure("return s:tensor('double'):view()[0.5]"), "0.5 is not a whole number"));
  EXPECT_TRUE(contains(failure("return s:tensor('long'):view().count"), "a view has no field 'count'"));
}

TEST_F(ViewTest, DoublesAreCheckedAsElementsAre) {
  run("local d = s:tensor('long'):view():doubles(1, 2) assert(d[0] == 0 and d[1] == 2^63)\n"
      "assert(require('ffi').sizeof(s:tensor('long'):view():doubles(4)) == 0)");
  for (const char* call : {"v:doubles(3, 2)", "v:doubles(-1, 1)", "v:doubles(0, 1e300)", "v:doubles(0.5, 1)", "v:doubles(0/0, 1)"}) {
    EXPECT_TRUE(contains(failure(std::string("local v = s:tensor('long'):view() ") + call), "are not within 0 to 3")) << call;
  }
  EXPECT_TRUE(contains(failure("s:tensor('long'):view().doubles({})"), "a view is expected"));
  EXPECT_TRUE(contains(failure("s:tensor('long'):view():doubles('a')"), "two whole numbers"));
}

class LargeTensor : public ScriptTest {
 protected:
  static constexpr uint64_t kCount = 1 << 20;  // 4 MiB

  void SetUp() override {
    ScriptTest::SetUp();
    auto session = std::make_unique<FakeSession>(fake_graph({{"large", "Parameter"}}));
    std::vector<double> values(kCount);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 1000);
    session->put("large", 0, make_tensor(DType::kFloat32, {1024, 1024}, values));
    fake = session.get();
    script->set_session(std::move(session));
  }

  FakeSession* fake = nullptr;
};

TEST_F(LargeTensor, OneElementReadsOneElement) {
  run("assert(s:tensor('large'):at(5, 7) == (5 * 1024 + 7) % 1000)");
  EXPECT_EQ(fake->bytes_read(), 4u);
  EXPECT_TRUE(contains(failure("s:tensor('large'):at(5, 1024)"), "1024 is outside 0 to 1023"));
  EXPECT_EQ(fake->bytes_read(), 4u);
}

TEST_F(LargeTensor, ManyElementsReadTheTensorOnce) {
  run("local t, sum = s:tensor 'large', 0 for i = 0, 999 do sum = sum + t:at(0, i) end assert(sum == 499500)");
  EXPECT_LT(fake->bytes_read(), 4 * kCount + 1000);
}

TEST_F(LargeTensor, ASliceReadsItsPart) {
  run("local t = s:tensor('large'):slice '3,10:20' assert(t.size == 10 and t:at(0) == (3 * 1024 + 10) % 1000)");
  EXPECT_EQ(fake->bytes_read(), 40u);
  run("local t = s:tensor('large'):slice '2:4' assert(t.size == 2048 and t:at(1, 1023) == (3 * 1024 + 1023) % 1000)");
  EXPECT_EQ(fake->bytes_read(), 40u + 2 * 4096);
  fake->reset_counters();
  run("local t = s:tensor('large'):slice ':,1' assert(t.size == 1024 and t:at(1023) == (1023 * 1024 + 1) % 1000)");
  EXPECT_LE(fake->bytes_read(), 4 * kCount);
  EXPECT_TRUE(contains(failure("s:tensor('large'):slice '1024'"), "axis 0 of length 1024"));
  // Every n-th position, and the axes between.
  run("local t = s:tensor('large'):slice '::512,5' assert(t.size == 2 and t:at(1) == (512 * 1024 + 5) % 1000)");
  run("local t = s:tensor('large'):slice '1,1::500' assert(t.size == 3 and t:at(2) == (1024 + 1001) % 1000)");
  run("local t = s:tensor('large'):slice '1:9:4,:' assert(t.shape[1] == 2 and t:at(1, 7) == (5 * 1024 + 7) % 1000)");
  run("local t = s:tensor('large'):slice '...,3' assert(t.size == 1024 and t:at(2) == (2 * 1024 + 3) % 1000)");
  run("local t = s:tensor('large'):slice '2,...' assert(t.size == 1024 and t:at(2) == (2 * 1024 + 2) % 1000)");
  run("assert(s:tensor('large'):slice('1,2,...'):at() == (1024 + 2) % 1000)");
  run("assert(s:tensor('large'):slice('::9223372036854775807').shape[1] == 1)");
  EXPECT_TRUE(contains(failure("s:tensor('large'):slice '::0'"), "a step is 1 or more"));
  EXPECT_TRUE(contains(failure("s:tensor('large'):slice '...,...'"), "has '...' twice"));
}

TEST_F(LargeTensor, SlicesOfAnyShapeHoldTheRightElements) {
  std::vector<double> values(kCount);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  fake->put("large", 0, make_tensor(DType::kFloat32, {16, 64, 1024}, values));
  run(R"(
    local t = s:tensor "large"
    local function place(i, j, k) return (i * 64 + j) * 1024 + k end
    for _, case in ipairs {
      { "1:3,:,5:9", { 1, 2 }, { 0, 63 }, { 5, 8 } }, { ":,2,:", { 0, 15 }, { 2, 2 }, { 0, 1023 } },
      { ":,:,7", { 0, 15 }, { 0, 63 }, { 7, 7 } },
      { "-1", { 15, 15 }, { 0, 63 }, { 0, 1023 } }, { "2,3,4", { 2, 2 }, { 3, 3 }, { 4, 4 } }, { "3:9:x", nil },
      { "", { 0, 15 }, { 0, 63 }, { 0, 1023 } }, { ":,1:3", { 0, 15 }, { 1, 2 }, { 0, 1023 } },
      { "14:,60:,1000:", { 14, 15 }, { 60, 63 }, { 1000, 1023 } },
    } do
      local text, is, js, ks = unpack(case)
      if is then
        local v, at = t:slice(text):view(), 0
        for i = is[1], is[2] do for j = js[1], js[2] do for k = ks[1], ks[2] do
          if v[at] ~= place(i, j, k) then error(text .. ": element " .. at .. " is " .. v[at]) end
          at = at + 1
        end end end
        assert(v.n == at, text)
      else
        assert(not pcall(t.slice, t, text))
      end
    end
    assert(t:slice("5:2").size == 0 and t:slice(":,3:3").size == 0)
  )");
}

TEST_F(LargeTensor, SaveWritesBlockByBlockAndKeepsNothing) {
  const std::string path = ::testing::TempDir() + "msdbg_large.npy";
  run("local t = s:tensor 'large' t:save '" + path + "'");
  EXPECT_EQ(fake->bytes_read(), 4 * kCount);
  std::ifstream file(path, std::ios::binary);
  std::string image(std::istreambuf_iterator<char>(file), {});
  const TensorPtr whole = fake->load(fake->id("large", 0)).value();
  const std::vector<std::byte> wanted = npy_bytes(whole->view());
  ASSERT_EQ(image.size(), wanted.size());
  EXPECT_EQ(std::memcmp(image.data(), wanted.data(), wanted.size()), 0);
  std::remove(path.c_str());
  fake->reset_counters();
  run("assert(s:tensor('large'):at(0, 1) == 1)");
  EXPECT_EQ(fake->bytes_read(), 4u);
}

TEST_F(LargeTensor, ReleaseReadsAnewAndReachesATraining) {
  run("local t = s:tensor 'large' assert(t:view()[1] == 1) t:release() assert(t:view()[1] == 1)");
  EXPECT_EQ(fake->bytes_read(), 2 * 4 * kCount);
  FakeLiveSession* training = nullptr;
  auto options = small_options();
  options.listen = [&](const ListenOptions&) -> Result<std::unique_ptr<LiveSession>> {
    auto made = small_training();
    training = made.get();
    return std::unique_ptr<LiveSession>(std::move(made));
  };
  auto other = Script::create(options);
  ASSERT_TRUE(other.ok());
  const char* text = "local l = msdbg.listen {} local t = l:tensor 'fc.weight' local v = t:view() t:release() assert(v[0])";
  EXPECT_EQ((*other)->run_text(text, "@l.lua").error, "");
  ASSERT_NE(training, nullptr);
  ASSERT_EQ(training->given_back.size(), 1u);
}

TEST_F(ViewTest, ThePointerKeepsTheMemoryOfACollectedView) {
  auto options = small_options();
  options.open = [](const std::string&, const DumpOptions&) -> Result<std::unique_ptr<Session>> {
    auto session = std::make_unique<FakeSession>(fake_graph({{"Default/Big-op0", "MatMul"}}));
    session->put("Default/Big-op0", 0, make_tensor(DType::kFloat32, {10 << 20}, std::vector<double>(10 << 20, 1.0)));
    return std::unique_ptr<Session>(std::move(session));
  };
  auto other = Script::create(options);
  ASSERT_TRUE(other.ok());
  // The limit of 64 MB fits one view of 40 MB: a second one shows whether the first is still alive.
  const auto outcome = (*other)->run_text(
      "local t = msdbg.open('big', { mem_limit = 64 }):tensor 'Big-op0'\n"
      "local d = t:view().data\n"
      "collectgarbage() collectgarbage()\n"
      "local ok, e = pcall(t.view, t)\n"
      "assert(not ok and e.code == 'out_of_memory', tostring(e))\n"
      "assert(d[5] == 1)\n"
      "d = nil\n"
      "assert(t:view()[5] == 1)",
      "@big.lua");
  EXPECT_EQ(outcome.error, "");
}

}  // namespace
}  // namespace msdbg::testing
