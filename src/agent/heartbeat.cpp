#include "agent/heartbeat.h"

#include "msdbg/threads.h"

namespace msdbg::agent {
namespace {

constexpr int kMaxMissedBeats = 5;  // in total, not in a row

}  // namespace

Heartbeat::Heartbeat(const ChannelPtr& channel, std::chrono::milliseconds period, std::chrono::milliseconds retry)
    : caller_(channel), period_(period), retry_(retry) {
  // Without a thread there are no heartbeats; other calls still show that the training is alive.
  if (const Status status = start_thread(thread_, "heartbeat", [this] { run(); }); !status.ok()) log(LogLevel::kWarning, status.message());
}

Heartbeat::~Heartbeat() { stop(); }

void Heartbeat::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  caller_.cancel();
  if (thread_.joinable()) thread_.join();
}

bool Heartbeat::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return stopping_; });
}

void Heartbeat::run() {
  debugger::Heartbeat beat;
  beat.set_message("Debugger is alive");
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(period_).count();
  beat.set_period(static_cast<int32_t>(std::max<int64_t>(seconds, 1)));
  const grpc::ByteBuffer message = to_buffer(beat);
  int failures = 0;
  while (pause(std::chrono::milliseconds(0))) {
    const bool answered = caller_.call("SendHeartbeat", message).ok;
    if (!answered && ++failures == kMaxMissedBeats) return;
    if (!pause(answered ? period_ : retry_)) return;
  }
}

}  // namespace msdbg::agent
