#include "session/dump/new_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "msdbg/threads.h"

namespace msdbg::dump {
namespace {

/// What happens to the rows 0, 1, ...
struct Events {
  std::vector<int> put;  // in order
  std::atomic<int> made{0}, alive{0};
  int given = 0, most_ahead = 0;
  int fails_to_put = -1, throws = -1, throws_in_next = -1;
};

class TestRow : public NewRow {
 public:
  TestRow(Events& events, int number) : events_(events), number_(number) { ++events_.alive; }
  ~TestRow() override { --events_.alive; }
  void make() override {
    made_ = true;
    ++events_.made;
    if (number_ == events_.throws) throw std::runtime_error("row " + std::to_string(number_));
  }
  Status put() override {
    EXPECT_TRUE(made_);
    events_.most_ahead = std::max(events_.most_ahead, events_.given - number_);
    if (number_ == events_.fails_to_put) return Status(Code::kIoError, "disk full");
    events_.put.push_back(number_);
    return {};
  }

 private:
  Events& events_;
  const int number_;
  bool made_ = false;
};

Status write(Events& events, int count) {
  return write_rows([&]() -> std::unique_ptr<NewRow> {
    if (events.given == events.throws_in_next) throw std::runtime_error("next");
    if (events.given == count) return nullptr;
    return std::make_unique<TestRow>(events, events.given++);
  });
}

TEST(NewRows, ArePutInOrderAndNeverAllInMemory) {
  for (const int count : {0, 1, 2, 3, 500}) {
    Events events;
    EXPECT_TRUE(write(events, count).ok());
    ASSERT_EQ(events.put.size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) EXPECT_EQ(events.put[static_cast<size_t>(i)], i);
    EXPECT_EQ(events.made, count);
    EXPECT_EQ(events.alive, 0);
    EXPECT_LE(events.most_ahead, static_cast<int>(2 * thread_count(0, UINT32_MAX)));
  }
}

TEST(NewRows, TheFirstErrorEndsIt) {
  Events events;
  events.fails_to_put = 20;
  EXPECT_EQ(write(events, 500).message(), "disk full");
  EXPECT_EQ(events.put.size(), 20u);
  EXPECT_LT(events.given, 500);
  EXPECT_EQ(events.alive, 0);
}

TEST(NewRows, ExceptionsArePassedOn) {
  for (const int row : {0, 1, 7, 499}) {
    Events events, in_next;
    events.throws = row;
    EXPECT_THROW((void)write(events, 500), std::runtime_error);
    EXPECT_EQ(events.put.size(), static_cast<size_t>(row)) << "those before it are in the index";
    EXPECT_EQ(events.alive, 0);
    in_next.throws_in_next = row;
    EXPECT_THROW((void)write(in_next, 500), std::runtime_error);
    EXPECT_EQ(in_next.alive, 0);
  }
}

}  // namespace
}  // namespace msdbg::dump
