// The cases of tests/data/condition-cases.json, one test each, through real tensors and the real statistics.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "msdbg/simd.h"
#include "msdbg/tensor.h"
#include "msdbg/watch.h"

namespace msdbg {
namespace {

using Json = nlohmann::json;

struct Case {
  std::string id;
  Json fields;
  friend void PrintTo(const Case& test_case, std::ostream* out) { *out << test_case.id; }
};

std::vector<Case> all_cases() {
  std::ifstream file(MSDBG_CONDITION_CASES);
  std::vector<Case> cases;
  for (const Json& fields : Json::parse(file)) cases.push_back({fields.at("id").get<std::string>(), fields});
  return cases;
}

double number(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_string() ? parse_double(value.get<std::string>()).value() : value.get<double>();
}

template <typename T>
void append(std::vector<std::byte>& bytes, T element) {
  const auto* from = reinterpret_cast<const std::byte*>(&element);
  bytes.insert(bytes.end(), from, from + sizeof element);
}

/// 64-bit integers are decimal strings, because a double would round them.
void append_element(std::vector<std::byte>& bytes, DType dtype, const Json& value) {
  switch (dtype) {
    case DType::kInt64:
      return append(bytes, value.is_string() ? std::stoll(value.get<std::string>()) : value.get<long long>());
    case DType::kBool:
      return append(bytes, static_cast<uint8_t>(number(value)));
    case DType::kInt8:
      return append(bytes, static_cast<int8_t>(number(value)));
    case DType::kUInt8:
      return append(bytes, static_cast<uint8_t>(number(value)));
    case DType::kInt32:
      return append(bytes, static_cast<int32_t>(number(value)));
    case DType::kFloat16:
      return append(bytes, float_to_half(number(value)));
    case DType::kFloat32:
      return append(bytes, static_cast<float>(number(value)));
    case DType::kFloat64:
      return append(bytes, number(value));
    default:
      FAIL() << "a dtype that the cases did not have: " << dtype_name(dtype);
  }
}

TensorPtr tensor(DType dtype, const Json& shape, const Json& elements) {
  std::vector<std::byte> bytes;
  for (const Json& element : elements) append_element(bytes, dtype, element);
  return TensorBuffer::create(dtype, shape.get<Shape>(), std::move(bytes)).value();
}

Condition enabled_as_given(const Json& test_case) {
  // Not make_condition(): the cases test the evaluator without the rules and defaults of creation.
  Condition condition;
  condition.spec = find_condition(test_case.at("condition").get<std::string>()).value();
  for (const auto& [name, value] : test_case.at("params").items()) condition.params[name] = number(value);
  return condition;
}

class ConditionCase : public ::testing::TestWithParam<Case> {};

TEST_P(ConditionCase, IsDecidedAsSpecified) {
  const Json& test_case = GetParam().fields;
  SCOPED_TRACE(test_case.at("note").get<std::string>());
  const DType dtype = dtype_from_name(test_case.at("dtype").get<std::string>());
  const TensorPtr current = tensor(dtype, test_case.at("shape"), test_case.at("current"));
  const Json& old = test_case.at("previous");
  const TensorPtr previous =
      old.is_null() ? nullptr : tensor(dtype, test_case.value("previous_shape", test_case.at("shape")), old);

  const Condition condition = enabled_as_given(test_case);
  StatsRequest request;
  add_needs(condition, request);
  Previous state = Previous::kNotNeeded;
  if (condition.spec->needs_previous) {
    state = !previous || previous->count() == 0     ? Previous::kMissing
            : previous->count() != current->count() ? Previous::kSizeDiffers
                                                    : Previous::kPresent;
  }
  const Stats stats = state == Previous::kPresent
                          ? compute_stats(current->view(), previous->view(), request)
                          : compute_stats(current->view(), StatsRequest{request.ranges, {}, false});
  const Decision decision = decide(condition, stats, request, state, Semantics::kCompat);

  EXPECT_EQ(decision.hit(), test_case.at("hit").get<bool>());
  EXPECT_EQ(decision.error_code, test_case.at("error_code").get<uint32_t>());
  EXPECT_EQ(decision.reason.empty(), decision.verdict != Verdict::kNotChecked);
  ASSERT_EQ(decision.params.size(), test_case.at("actual").size());
  for (const ParamResult& param : decision.params) {
    const Json& wanted = test_case.at("actual").at(param.name);
    ASSERT_EQ(param.actual.has_value(), !wanted.is_null()) << param.name;
    if (wanted.is_null()) continue;
    const double value = number(wanted);
    if (std::isinf(value)) {
      EXPECT_EQ(*param.actual, value) << param.name;
    } else {
      EXPECT_NEAR(*param.actual, value, 1e-12 * std::abs(value)) << param.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, ConditionCase, ::testing::ValuesIn(all_cases()),
                         [](const auto& made) { return made.param.id; });

TEST(ConditionCases, AllAreThere) { EXPECT_EQ(all_cases().size(), 114u); }

}  // namespace
}  // namespace msdbg
