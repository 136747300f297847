#include "session/msprobe/json_members.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace msdbg::msprobe {
namespace {

std::vector<std::string> keys_of(const std::string& text, Status* status) {
  std::vector<std::string> keys;
  *status = read_members(text, "data", [&](std::string_view inside, JsonValue value) -> std::string {
    keys.push_back((inside.empty() ? "" : std::string(inside) + "/") + std::string(value.key()));
    return "";
  });
  return keys;
}

TEST(JsonMembers, OpenOneObjectAndTakeTheOthersWhole) {
  Status status;
  const auto keys = keys_of(R"({"task": "x", "data": {"a": {"data": {"b": 1}}, "c": [1]}, "later": {"d": 2}})", &status);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(keys, (std::vector<std::string>{"task", "data/a", "data/c", "later"}));
}

TEST(JsonMembers, GiveWhatPrecedesACut) {
  Status status;
  const auto keys = keys_of(R"({"data": {"a": [1, 2], "b": {"x": )", &status);
  EXPECT_EQ(keys, std::vector<std::string>{"data/a"});
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("cut off after 34 bytes, behind 'a'"), std::string::npos) << status.message();
}

TEST(JsonMembers, CallACutInsideAStringACut) {
  for (const char* text : {R"({"a": 1, "b": "x)", R"({"a": 1, "b": "x\)", R"({"a": 1, "b": "\u00)", R"({"a": 1, "b": tru)", R"({"a": 1, "b": -)"}) {
    Status status;
    EXPECT_EQ(keys_of(text, &status), std::vector<std::string>{"a"});
    EXPECT_EQ(status.message(), "cut off after " + std::to_string(std::strlen(text)) + " bytes, behind 'a'") << text;
  }
  Status status;
  keys_of(R"({"a": 1, "b": "\x00"})", &status);
  EXPECT_NE(status.message().find("not JSON at byte 15, behind 'a': invalid escape"), std::string::npos) << status.message();
}

TEST(JsonMembers, ReadTheBareWordsAndNumbersThatPythonReads) {
  std::vector<double> numbers;
  std::vector<std::string> printed;
  const Status status = read_members(R"({"a": NaN, "b": Infinity, "c": -Infinity, "d": 1e999, "e": -0.0,
                                         "f": 123456789012345678901234567890, "g": 0.9997397065162659, "h": "1e999",
                                         "i": -1e400, "j": 1e-400})",
                                     "", [&](std::string_view, JsonValue value) -> std::string {
                                       numbers.push_back(value.number());
                                       printed.push_back(value.printed());
                                       return "";
                                     });
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(numbers.size(), 10u);
  EXPECT_TRUE(std::isnan(numbers[0]));
  EXPECT_EQ(numbers[1], INFINITY);
  EXPECT_EQ(numbers[2], -INFINITY);
  EXPECT_EQ(numbers[3], INFINITY);
  EXPECT_EQ(numbers[4], 0);
  EXPECT_EQ(numbers[5], 123456789012345678901234567890.0);
  EXPECT_EQ(numbers[6], 0.9997397065162659);
  EXPECT_EQ(printed[7], "1e999");
  EXPECT_EQ(numbers[8], -INFINITY);
  EXPECT_EQ(numbers[9], 0);
}

TEST(JsonMembers, RefuseDeepNestingAndOtherTexts) {
  Status status;
  keys_of(R"({"data": {"a": )" + std::string(20000, '[') + std::string(20000, ']') + "}}", &status);
  EXPECT_EQ(status.message(), "'a' is nested more than 64 deep");
  for (const char* text : {"", "[]", "1", "{\"a\": }", "{} {}", "{\"a\": 1e}", "nul", "{\"data\": {\"a\": \"\\ud800\"}}"}) {
    keys_of(text, &status);
    EXPECT_EQ(status.code(), Code::kCorrupt) << text;
  }
}

TEST(JsonMembers, AreATree) {
  const std::string tree = R"({"a": {"x": [1, {"y": true}], "z": "text"}})";
  const Status status = read_members(tree, "", [](std::string_view, JsonValue value) -> std::string {
    EXPECT_EQ(value.find("z")->text(), "text");
    std::vector<JsonValue> list;
    for (const JsonValue item : value.find("x")->children()) list.push_back(item);
    EXPECT_EQ(list.size(), 2u);
    EXPECT_EQ(list[0].integer(), 1);
    EXPECT_TRUE(list[1].find("y")->truth());
    EXPECT_FALSE(value.find("y"));
    return "";
  });
  EXPECT_TRUE(status.ok());
}

}  // namespace
}  // namespace msdbg::msprobe
