// The functions of the C library that the wheel's agent brings itself. In this program they stand in for those of the C library.
#include "agent/portable/old_glibc.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

namespace {

namespace old_glibc = msdbg::agent::old_glibc;
using std::chrono::steady_clock;

constexpr std::int64_t kSecond = 1'000'000'000;

class OldWait : public testing::Test {
 protected:
  OldWait() { pthread_mutex_lock(&mutex_); }
  ~OldWait() override {
    pthread_mutex_unlock(&mutex_);
    pthread_cond_destroy(&condition_);
  }
  // Returns what the wait for `nanoseconds` on the clock returned.
  int wait(std::int64_t nanoseconds, std::int64_t slice, clockid_t clock = CLOCK_MONOTONIC) {
    timespec deadline{};
    clock_gettime(clock, &deadline);
    const std::int64_t sum = deadline.tv_nsec + nanoseconds;
    const std::int64_t seconds = sum / kSecond - (sum % kSecond < 0 ? 1 : 0);
    deadline.tv_sec += seconds;
    deadline.tv_nsec = sum - seconds * kSecond;
    return old_glibc::wait(&condition_, &mutex_, clock, deadline, slice);
  }
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

TEST_F(OldWait, ends_when_the_time_is_over) {
  const auto begin = steady_clock::now();
  EXPECT_EQ(wait(kSecond / 50, kSecond), ETIMEDOUT);
  EXPECT_GE(steady_clock::now() - begin, std::chrono::milliseconds(20));
  EXPECT_EQ(wait(kSecond / 50, kSecond, CLOCK_REALTIME), ETIMEDOUT);
}

TEST_F(OldWait, over_before_it_begins) {
  EXPECT_EQ(wait(0, kSecond), ETIMEDOUT);
  EXPECT_EQ(wait(-1, kSecond), ETIMEDOUT);
  EXPECT_EQ(wait(-500 * kSecond, kSecond), ETIMEDOUT);
  const timespec first{};
  EXPECT_EQ(old_glibc::wait(&condition_, &mutex_, CLOCK_MONOTONIC, first), ETIMEDOUT);
}

TEST_F(OldWait, returns_after_a_slice_as_if_woken) {
  EXPECT_EQ(wait(1000 * kSecond, kSecond / 100), 0);
  timespec last{.tv_sec = INT64_MAX, .tv_nsec = kSecond - 1};
  EXPECT_EQ(old_glibc::wait(&condition_, &mutex_, CLOCK_MONOTONIC, last, kSecond / 100), 0);
}

TEST_F(OldWait, is_woken) {
  std::thread other([this] {
    pthread_mutex_lock(&mutex_);  // free while the wait lasts
    pthread_mutex_unlock(&mutex_);
    pthread_cond_signal(&condition_);
  });
  EXPECT_EQ(wait(1000 * kSecond, 1000 * kSecond), 0);
  pthread_mutex_unlock(&mutex_);
  other.join();
  pthread_mutex_lock(&mutex_);
}

// std::condition_variable calls pthread_cond_clockwait; where the C library has it, it serves.
TEST(OldGlibc, condition_variables_work) {
  std::mutex mutex;
  std::condition_variable condition;
  bool done = false;
  std::unique_lock lock(mutex);
  EXPECT_FALSE(condition.wait_for(lock, std::chrono::milliseconds(20), [&] { return done; }));
  std::thread other([&] {
    const std::lock_guard guard(mutex);
    done = true;
    condition.notify_all();
  });
  EXPECT_TRUE(condition.wait_for(lock, std::chrono::seconds(1000), [&] { return done; }));
  lock.unlock();
  other.join();
}

TEST(OldGlibc, random_bytes) {
  for (const bool by_call : {true, false}) {
    std::array<std::uint64_t, 100> one{}, two{};
    ASSERT_TRUE(old_glibc::random_bytes(one.data(), sizeof one, by_call));
    ASSERT_TRUE(old_glibc::random_bytes(two.data(), sizeof two, by_call));
    EXPECT_NE(one, two);
    EXPECT_NE(one.front(), one.back());
    EXPECT_NE(one.back(), 0U);
  }
  std::array<char, 300> bytes{};
  EXPECT_EQ(getentropy(bytes.data(), 256), 0);
  EXPECT_EQ(getentropy(bytes.data(), 257), -1);
  EXPECT_EQ(errno, EIO);
}

TEST(OldGlibc, files) {
  const std::string name = testing::TempDir() + "old_glibc." + std::to_string(getpid()), link = name + ".link";
  std::ofstream(name) << "12345";
  ASSERT_EQ(symlink(name.c_str(), link.c_str()), 0);
  struct stat found {};
  ASSERT_EQ(stat(link.c_str(), &found), 0);
  EXPECT_EQ(found.st_size, 5);
  EXPECT_TRUE(S_ISREG(found.st_mode));
  EXPECT_EQ(found.st_uid, geteuid());
  ASSERT_EQ(lstat(link.c_str(), &found), 0);
  EXPECT_TRUE(S_ISLNK(found.st_mode));
  struct stat64 found64 {};
  ASSERT_EQ(stat64(link.c_str(), &found64), 0);
  EXPECT_EQ(found64.st_size, 5);
  ASSERT_EQ(lstat64(link.c_str(), &found64), 0);
  EXPECT_TRUE(S_ISLNK(found64.st_mode));

  const int file = open(name.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  found = {};
  ASSERT_EQ(fstat(file, &found), 0);
  EXPECT_EQ(found.st_size, 5);
  found64 = {};
  ASSERT_EQ(fstat64(file, &found64), 0);
  EXPECT_EQ(found64.st_ino, found.st_ino);
  ASSERT_EQ(fcntl64(file, F_SETFD, FD_CLOEXEC), 0);
  EXPECT_EQ(fcntl(file, F_GETFD), FD_CLOEXEC);
  close(file);
  unlink(name.c_str());
  unlink(link.c_str());

  EXPECT_EQ(stat(name.c_str(), &found), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(fstatat(AT_FDCWD, "/", &found, 0), 0);
  EXPECT_TRUE(S_ISDIR(found.st_mode));
}

}  // namespace
