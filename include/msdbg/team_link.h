// The transport of a Team. Header only: a plugin implements it and links nothing of msdbg.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace msdbg {

/// The first byte of every message.
enum class TeamMessage : uint8_t {
  // process 0 to another
  kBegin,   ///< a SharedRun: number, kind, threads, common
  kParcel,  ///< number of the run, then items
  kEnd,     ///< of a run
  kStop,    ///< of the job; then 1 if no process was lost
  // another to process 0
  kResults,  ///< number of the run, then items
  kUnable,   ///< why the process cannot take part
  kAlive,    ///< every second, with the name of its machine
  kLost,     ///< sent by its relay: how the process ended
};

/// No message has more items, and no run either.
constexpr uint64_t kMostTeamItems = uint64_t{1} << 32;

/// Connects process 0 with the others. One thread.
class TeamLink {
 public:
  struct Message {
    unsigned from = 0;
    std::string bytes;
  };
  virtual ~TeamLink() = default;
  virtual unsigned size() const = 0;  ///< processes, this one included
  /// Returns at once. False if that process cannot be reached.
  virtual bool send(unsigned to, std::string bytes) = 0;
  /// Returns at once, with a message if one has arrived.
  virtual std::optional<Message> receive() = 0;
  /// Waits until everything is sent. `clean`: no process was lost.
  virtual void close(bool clean) = 0;
};

/// The longest message.
inline constexpr uint64_t kMostMessageBytes = uint64_t{1} << 30;

// What the plugin exports. `version` is kVersion of the program that loads it.
extern "C" {
/// Process 0. Null with the reason in `error`.
using TeamOpen = TeamLink* (*)(const char* version, char* error, size_t error_size);
/// Another process: passes messages between process 0 and the socket of the process that works, `child`, until one of them ends.
/// Returns the exit status.
using TeamRelay = int (*)(const char* version, int socket, int child);
}
inline constexpr const char* kTeamOpen = "msdbg_team_open";
inline constexpr const char* kTeamRelay = "msdbg_team_relay";

}  // namespace msdbg
