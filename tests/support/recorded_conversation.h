// The recorded conversations of real peers (tests/data/live.tar.xz, see the README there), as messages on the wire.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "msdbg/base.h"
#include "session/live/exchange.h"

namespace msdbg::test {

struct RecordedMessage {
  enum class Direction : uint8_t { kClient, kServer, kNote };
  Direction direction = Direction::kNote;
  live::Rpc rpc{};          ///< unused in notes
  int index = -1;           ///< of the message in its stream; -1: not in a client's stream
  std::string bytes;        ///< serialized message; empty in notes and refusals
  std::string grpc_status;  ///< "UNAVAILABLE", ... if the call ended without a reply
  std::string text;         ///< of the note, or details of the status
  double at_ms = 0;
  int line = 0;             ///< in the file, from 1

  bool is_client() const { return direction == Direction::kClient; }
  bool is_server() const { return direction == Direction::kServer; }
};

struct RecordedConversation {
  std::string name;  ///< of the file, without extension
  std::vector<RecordedMessage> messages;
};

/// Names of all conversations in `folder`, sorted.
std::vector<std::string> conversation_names(const std::string& folder);

/// Rebuilds fields whose bytes the recording omits: graphs from the graph files next to it (or, if missing, the way they were
/// made), everything else from its first bytes followed by zeros.
/// Error: kIoError, kCorrupt with the line.
Result<RecordedConversation> load_conversation(const std::string& folder, const std::string& name);

}  // namespace msdbg::test
