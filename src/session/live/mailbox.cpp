#include "session/live/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace msdbg::live {
namespace {

// A signal handler cannot notify a condition variable: poll the flag this often.
constexpr std::chrono::milliseconds kTick{20};

}  // namespace

Mailbox::Mailbox() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
Mailbox::~Mailbox() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Mailbox::put(WireEvent event, bool always) {
  bool taker = false;
  {
    std::lock_guard lock(mutex_);
    if (events_.size() >= kMaxEvents && !always) return false;
    events_.push_back(std::move(event));
    taker = taking_;
    // The condition wakes a reader in take(); the descriptor is for readers that poll. Each write counts for one that waits for edges.
    if (!taker) signal();
  }
  if (taker) arrived_.notify_one();  // after unlocking, or the reader would wake up only to wait for the lock
  return true;
}

bool Mailbox::take(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) {
  std::unique_lock lock(mutex_);
  while (events_.empty()) {
    if (stop_on_interrupt && interrupt_requested()) return false;
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return false;
    taking_ = true;
    arrived_.wait_until(lock, std::min(deadline, now + kTick));
    taking_ = false;
  }
  *event = std::move(events_.front());
  events_.pop_front();
  if (!events_.empty() && !signalled_) signal();
  return true;
}

void Mailbox::acknowledge() {
  std::lock_guard lock(mutex_);
  if (!events_.empty() || !signalled_) return;
  eventfd_t ignored;
  ::eventfd_read(descriptor_, &ignored);
  signalled_ = false;
}

void Mailbox::signal() {
  if (descriptor_ >= 0) signalled_ = ::eventfd_write(descriptor_, 1) == 0;
}

}  // namespace msdbg::live
