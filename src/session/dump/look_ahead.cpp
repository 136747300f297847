#include "session/dump/look_ahead.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <ctime>

#include "msdbg/hash.h"
#include "msdbg/threads.h"

namespace msdbg::dump {
namespace {

/// They take some 80 bytes each until the dump is closed.
constexpr size_t kMostFiles = size_t{1} << 16;
/// What was seen earlier may have changed since.
constexpr int64_t kMostAge = 1'000'000'000;

}  // namespace

int64_t file_clock() {
  struct timespec time {};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

SeenFiles::SeenFiles(const Listing& listing) {
  for (const DirectoryEntry& entry : listing) {
    if (!entry.directory) files_.push_back(names_.add(entry.name));
  }
}

size_t SeenFiles::place_of(uint64_t name) const {
  const size_t mask = places_.size() - 1;
  size_t at = name & mask;
  while (places_[at].stamp.inode != 0 && places_[at].name != name) at = (at + 1) & mask;
  return at;
}

void SeenFiles::look(const std::string& path, const std::atomic<bool>& stop) {
  const int directory = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  places_.resize(std::bit_ceil(2 * files_.size() + 1));
  when_ = file_clock();
  for (const std::string_view file : files_) {
    if (stop) break;
    struct stat info {};
    if (::fstatat(directory, file.data(), &info, 0) != 0 || !S_ISREG(info.st_mode)) continue;
    const uint64_t name = hash_of(file);
    places_[place_of(name)] = {name, FileStamp::of(info)};
  }
  ::close(directory);
}

const FileStamp* SeenFiles::find(uint64_t name, int64_t now) const {
  if (places_.empty() || now < when_ || now - when_ > kMostAge) return nullptr;
  const Place& place = places_[place_of(name)];
  return place.stamp.inode == 0 ? nullptr : &place.stamp;
}

void LookAhead::add(const std::string& path, const Listing& listing) {
  SeenFiles files(listing);
  const std::lock_guard lock(mutex_);
  if (stop_ || files_ + files.size() > kMostFiles) return;
  const auto [at, added] = directories_.emplace(path, std::move(files));
  if (!added) return;
  files_ += at->second.size();
  waiting_.push_back(at);
  if (running_) return;
  if (thread_.joinable()) thread_.join();  // it has seen everything before this directory
  running_ = start_thread(thread_, "look ahead", [this] { run(); }).ok();
}

void LookAhead::run() {
  for (;;) {
    std::map<std::string, SeenFiles>::iterator next;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty() || stop_) {
        running_ = false;
        return;
      }
      next = waiting_.front();
      waiting_.pop_front();
    }
    next->second.look(next->first, stop_);
  }
}

void LookAhead::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

const SeenFiles* LookAhead::find(const std::string& path) const {
  const auto found = directories_.find(path);
  return found == directories_.end() ? nullptr : &found->second;
}

}  // namespace msdbg::dump
