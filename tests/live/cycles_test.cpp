// Opening, reading and closing sessions of every kind repeatedly must not leak.
#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <functional>
#include <thread>

#include "live/session_driver.h"
#include "msdbg/checkpoint.h"
#include "msdbg/dump.h"
#include "msdbg/sanitizers.h"
#include "support/memory.h"
#include "support/temp_dir.h"

namespace msdbg::test {
namespace {

using namespace std::chrono_literals;

constexpr int kWarmUp = 20;
constexpr int kCycles = 1000;

struct Held {
  int descriptors = 0;
  size_t bytes = 0;     ///< allocated and not freed; 0 under sanitizers, which search for leaks themselves
  size_t resident = 0;
};

/// Once they stay the same: gRPC closes connections a moment later.
int settled_descriptors() {
  constexpr int kSame = 10, kMost = 500;
  int count = open_descriptors();
  for (int i = 0, same = 0; i < kMost && same < kSame; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const int now = open_descriptors();
    same = now == count ? same + 1 : 0;
    count = now;
  }
  return count;
}

Held held() {
  Held held;
  held.descriptors = settled_descriptors();
  malloc_trim(0);
  held.bytes = mallinfo2().uordblks;
  std::ifstream statm("/proc/self/statm");
  size_t pages = 0;
  statm >> pages >> held.resident;
  held.resident *= 4096;
  return held;
}

void cycle(const std::function<void()>& once) {
  for (int i = 0; i < kWarmUp && !testing::Test::HasFatalFailure(); ++i) once();
  const Held before = held();
  for (int i = 0; i < kCycles && !testing::Test::HasFatalFailure(); ++i) once();
  const Held after = held();
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_LE(after.bytes, before.bytes + (size_t{64} << 10));  // a leak of one small object per cycle exceeds this
#if !defined(MSDBG_ASAN) && !defined(MSDBG_TSAN)
  EXPECT_LE(after.resident, before.resident + (size_t{4} << 20));
#endif
}

void cycle(const std::function<std::unique_ptr<Session>()>& open, const std::string& tensor, int64_t step) {
  cycle([&] {
    const std::unique_ptr<Session> session = open();
    ASSERT_NE(session, nullptr);
    const Result<TensorId> id = resolve_tensor(*session, tensor, step);
    ASSERT_TRUE(id.ok()) << id.status().message();
    const Result<Stats> stats = session->stats(*id);
    ASSERT_TRUE(stats.ok()) << stats.status().message();
    EXPECT_GT(stats->count, 0u);
  });
}

TEST(Cycles, Live) {
  cycle([] {
    Driver d;
    d.connect();
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
    EXPECT_EQ(d.session->graphs().size(), 1u);
  });
}

TEST(Cycles, Dump) {
  cycle([] {
    auto session = open_dump(MSDBG_TEST_DATA "/dumps/lenet-2.7.1-ok");
    return session.ok() ? std::move(*session) : nullptr;
  }, "fc1.weight:0", 1);
}

TEST(Cycles, Checkpoint) {
  for (const char* file : {"lenet-1_0.ckpt", "lenet-1_0.safetensors"}) {
    cycle([&]() -> std::unique_ptr<Session> {
      auto session = open_checkpoint(std::string(MSDBG_TEST_DATA "/checkpoints/lenet-2.7.1-explode/") + file);
      return session.ok() ? std::move(*session) : nullptr;
    }, "fc1.weight:0", 0);
  }
}

TEST(Cycles, Recording) {
  const TempDir dir;
  ListenOptions options;
  options.record = dir.file("conversation");
  {
    Driver d(options);
    d.connect();
    ASSERT_TRUE(d.session->wait_until_held(10s).ok());
    std::thread training([&] {
      (void)d.reply();
      debugger::TensorBase base;
      base.set_data_type(11);
      base.add_shape(4);
      base.set_data_size(16);
      EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensorBase, std::vector<std::string>{base.SerializeAsString()}).ok());
      d.hold(0, "");
      debugger::TensorProto slice = d.reply().view_cmd().tensors(0);
      const float values[] = {1, 2, 3, 4};
      slice.set_data_type(11);
      slice.add_dims(4);
      slice.set_finished(true);
      slice.set_tensor_content(values, sizeof values);
      EXPECT_TRUE(d.client->stream(live::Rpc::kSendTensors, std::vector<std::string>{slice.SerializeAsString()}).ok());
      d.hold(0, "");
    });
    const Result<TensorId> id = resolve_tensor(*d.session, "fc1.weight:0", 0);
    EXPECT_TRUE(id.ok() && d.session->stats(*id).ok());
    training.join();
  }
  cycle([&]() -> std::unique_ptr<Session> {
    auto session = open_recording(options.record);
    if (!session.ok() || !(*session)->wait_until_held(10s).ok()) return nullptr;
    return std::move(*session);
  }, "fc1.weight:0", 0);
}

}  // namespace
}  // namespace msdbg::test
