// Tables of texts and lists without an allocation for each: what goes in comes out, in its order.
#include "msdbg/text_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "msdbg/chains.h"
#include "msdbg/text_arena.h"

namespace msdbg {
namespace {

TEST(TextTable, EachOfManyTextsHasItsValue) {
  TextArena texts;
  TextTable<int> table;
  for (int i = 0; i < 10'000; ++i) {
    const auto [value, is_new] = table.add(texts.add("name" + std::to_string(i)), i);
    EXPECT_TRUE(is_new);
    EXPECT_EQ(value, i);
  }
  for (int i = 0; i < 10'000; ++i) {
    const int* const value = table.find("name" + std::to_string(i));
    ASSERT_NE(value, nullptr) << i;
    EXPECT_EQ(*value, i);
  }
  EXPECT_EQ(table.find("name10000"), nullptr);
  EXPECT_EQ(table.size(), 10'000u);
}

TEST(TextTable, TheFirstValueOfATextStays) {
  TextTable<int> table;
  EXPECT_EQ(table.find(""), nullptr);
  EXPECT_TRUE(table.add("", 1).second);
  EXPECT_FALSE(table.add("", 2).second);
  EXPECT_EQ(*table.find(""), 1);
  table.add("").first = 3;
  EXPECT_EQ(*table.find(""), 3);
}

TEST(TextTable, RoomThatIsMadeLaterKeepsTheTexts) {
  TextTable<int> table;
  table.add("a", 1);
  table.add("b", 2);
  table.reserve(1000);
  EXPECT_EQ(*table.find("a"), 1);
  EXPECT_EQ(*table.find("b"), 2);
}

TEST(TextTable, TextsAreListedInTheirOrder) {
  TextTable<int> table;
  for (const char* text : {"c", "a", "b", "a"}) table.add(text);
  std::string all;
  for (const auto& [text, value] : table) all += text;
  EXPECT_EQ(all, "cab");
}

TEST(Hash, ItsValuesStay) {
  // The index of a dump holds them.
  EXPECT_EQ(hash_of(""), 0u);
  EXPECT_EQ(hash_of("Parameter.fc1.weight.0.0.1.output.0.DefaultFormat.npy"), 0xc72516f7363e9932u);
  EXPECT_EQ(hash_of("relu", 7), 0x017195075ed5a77cu);
}

TEST(Chains, ListsGrowSideBySide) {
  Chains<int> chains;
  Chains<int>::List even, odd, none;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(chains.add(i % 2 == 0 ? even : odd, i), static_cast<uint32_t>(i));
  const auto items = [&](const Chains<int>::List& list) {
    std::vector<int> found;
    for (const int item : chains.of(list)) found.push_back(item);
    return found;
  };
  EXPECT_EQ(items(even), (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(items(odd), (std::vector<int>{1, 3, 5}));
  EXPECT_TRUE(items(none).empty());
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(even.has_one());
  chains.add(none, 9);
  EXPECT_TRUE(none.has_one());
}

}  // namespace
}  // namespace msdbg
