// Several processes of one job that read a dump together. Process 0 runs the command, deals out what has to be read, and gathers the
// results; the others only read. What is printed does not depend on how many there are.
//
// Process 0: the owner's thread only, unless documented otherwise. One Team at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/division.h"
#include "msdbg/team_link.h"

namespace msdbg {

class SharedRun;

/// Process 0's view of the job.
class Team {
 public:
  explicit Team(std::unique_ptr<TeamLink> link);
  ~Team();  ///< ends the other processes
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// The team of this job; null in a single process.
  static Team* current();

  unsigned size() const { return static_cast<unsigned>(members_.size()); }  ///< this process included
  /// Another process was lost: the command ends with what was gathered. Any thread; async-signal-safe.
  static void signal_lost() noexcept;
  /// Why the job cannot go on; ok while it can. Once a process is lost, interrupt_requested() is true.
  Status lost() const;
  /// Takes in what has arrived.
  void poll();

 private:
  friend class SharedRun;
  struct Member {
    bool usable = true;
    std::string host;
    std::chrono::steady_clock::time_point heard;
  };
  void receive(unsigned from, std::string_view bytes);
  void lose(std::string why);
  void break_off(unsigned process);
  std::string name(unsigned process) const;
  void set_aside(unsigned process, const std::string& why);
  bool send(unsigned to, std::string bytes);

  std::unique_ptr<TeamLink> link_;
  std::vector<Member> members_;  // by process
  std::map<uint64_t, SharedRun*> runs_;
  uint64_t next_work_ = 1;
  Status lost_;
  bool broken_ = false;  ///< not even the relay of a process answers
};

/// What became of the result of another process.
enum class Taken : uint8_t {
  kYes,
  kAgain,    ///< this process does the item itself
  kDamaged,  ///< it cannot be read
};

/// One piece of work that the team shares: items that any process can do alone. What another process fails to do, this one does: a
/// failure then reads as if there were only one process.
class SharedRun {
 public:
  struct Work {
    std::string_view kind;        ///< the handler of the other processes
    std::string common;           ///< what they need for all items
    unsigned threads = 0;         ///< of each process; 0: as many as it has processors
    std::vector<uint64_t> bytes;  ///< by item, about what it reads
    std::function<std::string(uint64_t item)> describe;             ///< for the process that does it
    std::function<Taken(uint64_t item, std::string_view result)> take;
  };
  /// Deals out the first parcels. The functions of `work` are called on the owner's thread.
  SharedRun(Team& team, Work work);
  ~SharedRun();
  SharedRun(const SharedRun&) = delete;
  SharedRun& operator=(const SharedRun&) = delete;

  /// The next item for this process; waits while others may give theirs back. Nothing at the end, after an interrupt and after stop().
  /// Any thread.
  std::optional<uint64_t> next();
  /// No thread gets another item. Any thread.
  void stop();
  /// Takes results and deals out parcels. Call it every few milliseconds.
  void poll();
  /// Nothing is left to deal out, and no other process has anything. Items that next() returned may still be in work.
  bool done();

 private:
  friend class Team;
  bool take(unsigned from, uint64_t item, bool done, std::string_view result);
  void give_up(unsigned process);
  void deal();

  Team& team_;
  const Work work_;
  const uint64_t number_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable changed_;
  Dealer dealer_;         // under mutex_
  Parcel own_;            // under mutex_; of this process, what is left
  std::deque<uint64_t> again_;  // under mutex_
  unsigned taking_ = 0;         // under mutex_; results that are looked at
  uint64_t elsewhere_ = 0;      // items that other processes have done
  bool stopped_ = false;  // under mutex_
};

/// Where work_off() gets its items. `stop` ends the waiting of `next`.
struct SharedItems {
  std::function<std::optional<uint64_t>()> next;
  std::function<void()> poll, stop;
};
/// Does items in `threads` threads of this process until none is left or one fails. Polls meanwhile. Error: of an item; kInterrupted.
Status work_off(const SharedItems& items, unsigned threads, const std::function<Status(uint64_t item, unsigned worker)>& here,
                const std::function<void()>& between = nullptr);

/// Like parallel_for(), over all processes: `here(item, worker)` does an item in this process.
Status share_for(Team& team, SharedRun::Work work, const std::function<Status(uint64_t item, unsigned worker)>& here,
                 const std::function<void()>& between = nullptr);

/// How many processors this process may use; 0: all of them. For processes that share a machine. Call it before threads start.
void set_processors(unsigned count);

/// The work of another process on one SharedRun.
class SharedJob {
 public:
  virtual ~SharedJob() = default;
  /// Does an item and returns its result, or why it cannot. Any thread; `worker` belongs to one thread.
  virtual Result<std::string> run(std::string_view item, unsigned worker) = 0;
};
/// Makes the job from what is common to all items, for up to `threads` threads. Error: why this process cannot take part.
using SharedHandler = std::function<Result<std::unique_ptr<SharedJob>>(std::string_view common, unsigned threads)>;

/// Another process: does what arrives on the socket until process 0 ends. Returns false if what arrived makes no sense.
bool serve_team(int socket, const std::map<std::string, SharedHandler, std::less<>>& handlers);

}  // namespace msdbg
