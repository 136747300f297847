#include "msdbg/team.h"

#include <fmt/format.h>

#include <thread>

#include "msdbg/bytes.h"
#include "msdbg/log.h"
#include "msdbg/threads.h"

namespace msdbg {
namespace {

constexpr std::chrono::seconds kSilence{60};
constexpr std::chrono::milliseconds kTick{100}, kPoll{1};

Team* g_team = nullptr;
std::atomic<bool> g_signalled{false};

ByteWriter message(TeamMessage type) {
  ByteWriter out;
  out.byte(static_cast<unsigned>(type));
  return out;
}

}  // namespace

Team::Team(std::unique_ptr<TeamLink> link) : link_(std::move(link)), members_(link_->size()) {
  MSDBG_CHECK(g_team == nullptr && !members_.empty());
  for (Member& member : members_) member.heard = std::chrono::steady_clock::now();
  g_signalled = false;
  g_team = this;
}

Team::~Team() {
  const bool clean = !broken_ && !g_signalled;
  for (unsigned process = 1; process < size(); ++process) {
    ByteWriter out = message(TeamMessage::kStop);
    out.flag(clean);
    send(process, out.take());
  }
  link_->close(clean);
  g_team = nullptr;
}

Team* Team::current() { return g_team; }

void Team::signal_lost() noexcept {
  g_signalled = true;
  request_interrupt();
}

Status Team::lost() const {
  if (!lost_.ok() || !g_signalled) return lost_;
  return Status(Code::kPeerLost, "mpirun ends the job: another process was lost, or mpirun was interrupted");
}

void Team::lose(std::string why) {
  if (lost_.ok()) lost_ = Status(Code::kPeerLost, std::move(why));
  request_interrupt();
}

void Team::break_off(unsigned process) {
  broken_ = true;
  lose(name(process) + " cannot be reached");
}

bool Team::send(unsigned to, std::string bytes) {
  MSDBG_CHECK(bytes.size() <= kMostMessageBytes);
  return link_->send(to, std::move(bytes));
}

std::string Team::name(unsigned process) const {
  const std::string& host = members_[process].host;
  return host.empty() ? fmt::format("process {}", process) : fmt::format("process {} on {}", process, host);
}

void Team::poll() {
  while (std::optional<TeamLink::Message> arrived = link_->receive()) {
    if (arrived->from > 0 && arrived->from < size()) receive(arrived->from, arrived->bytes);
  }
  const auto now = std::chrono::steady_clock::now();
  for (unsigned process = 1; process < size(); ++process) {
    if (now - members_[process].heard > kSilence) {
      broken_ = true;
      lose(fmt::format("{} has not answered for {} s", name(process), std::chrono::seconds(kSilence).count()));
    }
  }
}

void Team::receive(unsigned from, std::string_view bytes) {
  members_[from].heard = std::chrono::steady_clock::now();
  ByteReader in(bytes);
  switch (static_cast<TeamMessage>(in.byte())) {
    case TeamMessage::kAlive:
      members_[from].host = printable(in.text());
      break;
    case TeamMessage::kUnable:
      set_aside(from, std::string(in.text()));
      break;
    case TeamMessage::kLost:
      lose(fmt::format("{} was lost: {}", name(from), printable(in.text())));
      return;
    case TeamMessage::kResults: {
      const auto run = runs_.find(in.number());
      if (run == runs_.end()) return;  // it has ended, after an interrupt
      bool good = true;
      for (size_t left = in.items(kMostTeamItems); left > 0 && in.good() && good; --left) {
        const uint64_t item = in.number();
        const bool done = in.flag();
        const std::string_view result = in.text();
        good = in.good() && run->second->take(from, item, done, result);
      }
      if (!good || !in.at_end()) lose(fmt::format("{} sent a result that cannot be read", name(from)));
      return;
    }
    default:
      in.fail();
  }
  if (!in.at_end()) lose(fmt::format("{} sent a message that cannot be read", name(from)));
}

/// Its share goes to the others: the result is the same, only later.
void Team::set_aside(unsigned process, const std::string& why) {
  if (!members_[process].usable) return;
  members_[process].usable = false;
  log(LogLevel::kWarning, fmt::format("{} does not take part: {}", name(process), printable(why)));
  for (const auto& [number, run] : runs_) run->give_up(process);
}

SharedRun::SharedRun(Team& team, Work work)
    : team_(team), work_(std::move(work)), number_(team.next_work_++), dealer_(work_.bytes, team.size()) {
  if (work_.bytes.empty()) return;
  ByteWriter begin = message(TeamMessage::kBegin);
  begin.number(number_);
  begin.text(work_.kind);
  begin.number(work_.threads);
  begin.text(work_.common);
  const std::string bytes = begin.take();
  for (unsigned process = 1; process < team_.size(); ++process) {
    if (!team_.members_[process].usable) dealer_.give_up(process);
    else team_.send(process, bytes);
  }
  team_.runs_[number_] = this;
  deal();
}

SharedRun::~SharedRun() {
  if (work_.bytes.empty()) return;
  if (log_wanted(LogLevel::kInfo)) {
    log(LogLevel::kInfo, fmt::format("{}: other processes did {} of {} items", work_.kind, elsewhere_, work_.bytes.size()));
  }
  team_.runs_.erase(number_);
  for (unsigned process = 1; process < team_.size(); ++process) {
    ByteWriter end = message(TeamMessage::kEnd);
    end.number(number_);
    team_.send(process, end.take());
  }
}

void SharedRun::deal() {
  for (unsigned round = 0; round < kParcelsAhead; ++round) {
    for (unsigned process = 1; process < team_.size(); ++process) {
      std::optional<Parcel> parcel;
      {
        const std::lock_guard lock(mutex_);
        parcel = dealer_.deal(process);
      }
      if (!parcel) continue;
      ByteWriter out = message(TeamMessage::kParcel);
      out.number(number_);
      out.number(parcel->count);
      for (uint64_t item = parcel->first; item < parcel->first + parcel->count; ++item) {
        out.number(item);
        out.text(work_.describe(item));
      }
      if (!team_.send(process, out.take())) team_.break_off(process);
    }
  }
}

std::optional<uint64_t> SharedRun::next() {
  std::unique_lock lock(mutex_);
  while (!stopped_ && !interrupt_requested()) {
    if (own_.count > 0) {
      --own_.count;
      return own_.first++;
    }
    if (!again_.empty()) {
      const uint64_t item = again_.front();
      again_.pop_front();
      return item;
    }
    if (const std::optional<Parcel> parcel = dealer_.deal(0)) {
      own_ = *parcel;
      changed_.notify_all();
    } else if (dealer_.done() && taking_ == 0) {
      return std::nullopt;
    } else if (std::this_thread::get_id() != owner_) {
      changed_.wait_for(lock, kTick);
    } else {  // without other threads, nobody else takes in results
      lock.unlock();
      poll();
      std::this_thread::sleep_for(kPoll);
      lock.lock();
    }
  }
  return std::nullopt;
}

void SharedRun::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

void SharedRun::poll() {
  team_.poll();
  deal();
}

bool SharedRun::done() {
  const std::lock_guard lock(mutex_);
  return own_.count == 0 && again_.empty() && dealer_.done();
}

bool SharedRun::take(unsigned from, uint64_t item, bool done, std::string_view result) {
  if (!team_.members_[from].usable) return true;  // somebody else does it again
  {
    const std::lock_guard lock(mutex_);
    if (!dealer_.finish(from, item)) return false;
    ++taking_;
  }
  const Taken taken = done ? work_.take(item, result) : Taken::kAgain;
  if (taken == Taken::kYes) ++elsewhere_;
  if (!done && log_wanted(LogLevel::kInfo))
    log(LogLevel::kInfo, fmt::format("{}: {}; process 0 tries", team_.name(from), printable(result)));
  const std::lock_guard lock(mutex_);
  --taking_;
  if (taken == Taken::kAgain) again_.push_back(item);
  changed_.notify_all();
  return taken != Taken::kDamaged;
}

void SharedRun::give_up(unsigned process) {
  const std::lock_guard lock(mutex_);
  dealer_.give_up(process);
  changed_.notify_all();
}

Status work_off(const SharedItems& items, unsigned threads, const std::function<Status(uint64_t, unsigned)>& here,
                const std::function<void()>& between) {
  std::mutex mutex;
  Status failure;
  std::atomic<unsigned> busy{threads};
  const auto loop = [&](unsigned worker) {
    struct Leave {
      std::atomic<unsigned>& count;
      ~Leave() { --count; }
    } const leave{busy};
    while (const std::optional<uint64_t> item = items.next()) {
      Status status = here(*item, worker);
      if (status.ok()) continue;
      items.stop();
      const std::lock_guard lock(mutex);
      if (failure.ok()) failure = std::move(status);
    }
  };
  Workers workers;
  struct Stop {
    const SharedItems& items;
    ~Stop() { items.stop(); }
  } const stop{items};  // before the threads are joined
  const unsigned started = workers.start(threads, loop);
  busy -= threads - started;
  if (started == 0) {
    busy = 1;
    loop(0);
  }
  while (busy > 0) {
    items.poll();
    if (between) between();
    std::this_thread::sleep_for(kPoll);
  }
  workers.join();
  if (failure.ok() && interrupt_requested()) return Status(Code::kInterrupted, "interrupted");
  return failure;
}

Status share_for(Team& team, SharedRun::Work work, const std::function<Status(uint64_t, unsigned)>& here,
                 const std::function<void()>& between) {
  const unsigned threads = thread_count(work.threads, work.bytes.size());
  SharedRun run(team, std::move(work));
  return work_off({[&] { return run.next(); }, [&] { run.poll(); }, [&] { run.stop(); }}, threads, here, between);
}

}  // namespace msdbg
