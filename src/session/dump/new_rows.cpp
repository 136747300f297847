#include "session/dump/new_rows.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>

#include "msdbg/threads.h"

namespace msdbg::dump {
namespace {

class RowWriter {
 public:
  explicit RowWriter(const std::function<std::unique_ptr<NewRow>()>& next) : next_(next) {}

  Status run() {
    const unsigned threads = thread_count(0, UINT32_MAX);
    const size_t ahead = 2 * size_t{threads};
    // A single row is not worth a thread.
    if (!fetch() || !fetch()) return put_all(ahead);
    Workers workers;
    const End end{*this};
    workers.start(threads - 1, [this](unsigned) { help(); });
    return put_all(ahead);
  }

 private:
  struct Row {
    std::unique_ptr<NewRow> row;
    bool made = false;
    std::exception_ptr failure;
  };
  /// Sends the other threads home, however run() ends.
  struct End {
    RowWriter& of;
    ~End() {
      const std::lock_guard lock(of.mutex_);
      of.ends_ = true;
      of.changed_.notify_all();
    }
  };

  bool fetch() {
    std::unique_ptr<NewRow> row = all_fetched_ ? nullptr : next_();
    all_fetched_ = row == nullptr;
    if (all_fetched_) return false;
    const std::lock_guard lock(mutex_);
    rows_.push_back({std::move(row), false, nullptr});
    changed_.notify_one();
    return true;
  }

  Status put_all(size_t ahead) {
    for (;;) {
      while (rows_.size() < ahead && fetch()) {
      }
      if (rows_.empty()) return {};
      std::unique_lock lock(mutex_);
      Row& first = rows_.front();
      while (!first.made) {
        if (!make_one(lock)) changed_.wait(lock);
      }
      lock.unlock();
      if (first.failure) std::rethrow_exception(first.failure);
      const std::unique_ptr<NewRow> row = std::move(first.row);
      if (Status status = row->put(); !status.ok()) return status;
      lock.lock();
      rows_.pop_front();
      --begun_;
      lock.unlock();
    }
  }

  void help() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      if (!make_one(lock)) changed_.wait(lock);
    }
  }

  /// False if nothing waits to be made.
  bool make_one(std::unique_lock<std::mutex>& lock) {
    if (begun_ == rows_.size()) return false;
    Row& row = rows_[begun_++];  // stays where it is while others come and go
    lock.unlock();
    std::exception_ptr failure;
    try {
      row.row->make();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    row.failure = failure;
    row.made = true;
    changed_.notify_all();
    return true;
  }

  const std::function<std::unique_ptr<NewRow>()>& next_;
  bool all_fetched_ = false;
  std::mutex mutex_;  // for the rest
  std::condition_variable changed_;
  std::deque<Row> rows_;  // in the order in which they are put; the calling thread alone adds and removes them
  size_t begun_ = 0;      // of rows_, the first ones
  bool ends_ = false;
};

}  // namespace

Status write_rows(const std::function<std::unique_ptr<NewRow>()>& next) { return RowWriter(next).run(); }

}  // namespace msdbg::dump
