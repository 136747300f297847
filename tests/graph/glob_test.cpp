#include "graph/glob.h"

#include <gtest/gtest.h>

namespace msdbg {
namespace {

bool matches(std::string_view pattern, std::string_view text) { return Glob(pattern).matches(text); }

TEST(Glob, OneStarStopsAtASlash) {
  EXPECT_TRUE(matches("Default/*/x", "Default/a/x"));
  EXPECT_FALSE(matches("Default/*/x", "Default/a/b/x"));
  EXPECT_TRUE(matches("a*c*", "abcbcd"));
  EXPECT_TRUE(matches("*", "name"));
  EXPECT_FALSE(matches("*", "a/b"));
}

TEST(Glob, TwoStarsCrossSlashes) {
  EXPECT_TRUE(matches("Default/**/Conv2D*", "Default/a/b/Conv2D-op1"));
  EXPECT_TRUE(matches("Gradients/**", "Gradients/a/b"));
  EXPECT_FALSE(matches("Gradients/**", "Default/Gradients/a"));
  EXPECT_TRUE(matches("**op1", "a/b-op1"));
  EXPECT_TRUE(matches("**", ""));
}

TEST(Glob, TwoStarsAroundAPartFindItAnywhere) {
  EXPECT_TRUE(matches("**.**", "fc1.weight"));
  EXPECT_TRUE(matches("**.**", "."));
  EXPECT_FALSE(matches("**.**", "fc1/weight"));
  EXPECT_TRUE(matches("**b/c**", "a/b/c"));
  EXPECT_FALSE(matches("**b/c**", "a/b/d"));
  EXPECT_TRUE(Glob("**RELU**", true).matches("a/ReLU-op1"));
}

TEST(Glob, TwoStarsBetweenTheEndsMayBeNothing) {
  EXPECT_TRUE(matches("a**b", "ab"));
  EXPECT_TRUE(matches("a**b", "a/x/b"));
  EXPECT_FALSE(matches("ab**ba", "aba"));
  EXPECT_FALSE(matches("a**b", "a/x/c"));
}

TEST(Glob, TwoStarsAndASlashAlsoMeanNoScope) {
  EXPECT_TRUE(matches("**/Conv2D*", "Conv2D-op1"));
  EXPECT_TRUE(matches("Default/**/x", "Default/x"));
  EXPECT_FALSE(matches("**/Conv2D*", "MyConv2D-op1"));
  EXPECT_FALSE(matches("Default/**/x", "Default/yx"));
}

TEST(Glob, AQuestionMarkIsOneCharacterButNoSlash) {
  EXPECT_TRUE(matches("fc?-Dense", "fc1-Dense"));
  EXPECT_FALSE(matches("fc?-Dense", "fc12-Dense"));
  EXPECT_FALSE(matches("a?b", "a/b"));
}

TEST(Glob, OtherCharactersAreTakenLiterally) {
  EXPECT_TRUE(matches("a.b[c](d)+*", "a.b[c](d)+e"));
  EXPECT_FALSE(matches("a.b*", "aXb"));
}

TEST(Glob, CaseCountsUnlessToldOtherwise) {
  EXPECT_FALSE(matches("relu*", "ReLU-op1"));
  EXPECT_TRUE(Glob("relu*", true).matches("ReLU-op1"));
}

// If each star entered the next one, this would take minutes.
TEST(Glob, ARowOfThousandsOfStarsEnds) {
  std::string scopes, deep, name;
  for (int i = 0; i < 20000; ++i) scopes += "**/", deep += "?**";
  for (int i = 0; i < 500; ++i) name += "scope/";
  EXPECT_TRUE(matches(scopes + "x", name + "x"));
  EXPECT_FALSE(matches(scopes + "x", name + "y"));
  EXPECT_FALSE(matches(deep, name));
}

TEST(Glob, ManyStarsOnALongNameEnd) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "**/a*";
  EXPECT_FALSE(matches(pattern + "b", std::string(400, 'a')));
  EXPECT_TRUE(matches("**/**/**/**/x", "a/b/x"));
}

}  // namespace
}  // namespace msdbg
