// Memory of messages from their arrival until the session has processed them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace msdbg::live {

/// A limit shared by many messages. Any thread.
class WaitingMemory {
 public:
  explicit WaitingMemory(uint64_t limit) : limit_(limit) {}
  bool take(uint64_t bytes) {
    if (bytes <= limit_ && used_.fetch_add(bytes) <= limit_ - bytes) return true;
    if (bytes <= limit_) used_ -= bytes;
    return false;
  }
  void release(uint64_t bytes) { used_ -= bytes; }
  uint64_t limit() const { return limit_; }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> used_{0};
};

/// The share of one message; returned on destruction.
class Charge {
 public:
  Charge() = default;
  explicit Charge(std::shared_ptr<WaitingMemory> memory) : memory_(std::move(memory)) {}
  Charge(Charge&& other) noexcept : memory_(std::move(other.memory_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() {
    if (memory_) memory_->release(bytes_);
  }

  /// False at the limit; nothing is added then.
  bool add(uint64_t bytes) {
    if (!memory_->take(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  uint64_t limit() const { return memory_->limit(); }

 private:
  std::shared_ptr<WaitingMemory> memory_;
  uint64_t bytes_ = 0;
};

}  // namespace msdbg::live
