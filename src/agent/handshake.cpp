// The start of a conversation: connection, handshake, graphs.
#include <fmt/format.h>

#include <algorithm>

#include "agent/conversation.h"
#include "agent/graph_message.h"
#include "agent/messages.h"

namespace msdbg::agent {
namespace {

/// For the second attempt to connect.
constexpr auto kLeastPatience = std::chrono::seconds(1), kMostPatience = std::chrono::seconds(3);

}  // namespace

void Conversation::connect() {
  connected_ = true;
  if (!traits_.levels) return;
  heartbeat_ = std::make_unique<Heartbeat>(channel_, options_.heartbeat_period, options_.retry_unit / 2);
}

debugger::Metadata Conversation::metadata(bool for_wait) const {
  debugger::Metadata metadata;
  const bool running = (for_wait && traits_.one_handshake) || traits_.handshake_per_run;
  const size_t graph = running ? current_ : graphs_.size() - 1;
  metadata.set_device_name(fmt::format("{}:{}", options_.device_id, graphs_[graph]->graph().id));
  if (options_.rank) metadata.set_rank(*options_.rank);
  metadata.set_cur_step(step_);
  metadata.set_backend(options_.backend);
  if (const std::string* node = cur_node_) metadata.set_cur_node(*node);
  if (for_wait && step_computed_) metadata.set_step_computed(true);
  if (for_wait && begins_) metadata.set_begins(true);
  if (for_wait) {
    for (const std::string& name : skipped_) metadata.add_skipped(name);
    metadata.set_cut_short(cut_short_);
    reports_.tell(metadata);
  }
  if (for_wait || !traits_.version_answer) return metadata;
  metadata.set_graph_num(static_cast<int32_t>(graphs_.size()));
  metadata.set_ms_version(options_.version);
  metadata.set_program(options_.program);
  metadata.set_program_version(options_.program_version);
  return metadata;
}

/// Sends new graphs to the debugger and waits for its first commands.
void Conversation::present_graphs() {
  unseen_.clear();
  if (traits_.initial_values) store_->load_parameters(traits_);
  initial_ = true;
  if (!handshaken_ || !traits_.one_handshake) {
    table_.clear();
    if (traits_.handshake_per_run) step_ = 0;
    if (!handshake()) {
      pending_.clear();
      initial_ = false;
      return;
    }
    handshaken_ = true;
  }
  send_graphs();
  suspend();
  initial_ = false;
  if (!terminated_) store_->keep_previous_parameters();
}

/// Sends graphs that were described again. The debugger passes over the suspension: it sends watchpoints for what is new.
void Conversation::present_replaced() {
  if (replaced_.empty()) return;
  std::swap(pending_, replaced_);
  replaced_.clear();
  unseen_.clear();
  described_again_ = true;
  if (!handshaken_) return pending_.clear();  // nobody has asked for graphs
  send_graphs();
  suspend();
}

/// The first call, repeated once if it found no connection. gRPC 1.51 may report the first connection of a process as failed though the
/// debugger accepted it: it reads errno after other calls that may have changed it.
Reply Conversation::greet() {
  debugger::Metadata greeting = metadata(false);
  greeting.set_reports(true);
  const grpc::ByteBuffer message = to_buffer(greeting);
  const Reply reply = caller_->call("SendMetadata", message);
  const auto patience = std::clamp<std::chrono::milliseconds>(2 * options_.retry_unit, kLeastPatience, kMostPatience);
  if (reply.reached || !channel_->WaitForConnected(std::chrono::system_clock::now() + patience)) return reply;
  return caller_->call("SendMetadata", message);
}

/// True if the graph must be sent.
bool Conversation::handshake() {
  const Reply reply = greet();
  if (!reply.ok) note("handshake", reply);
  if (!traits_.version_answer) return true;
  if (!reply.ok) return false;
  if (reply.message.cmd_case() != debugger::EventReply::kVersionMatched) {
    set_problem("the debugger did not say whether it knows this version: it is too old");
    terminate();
    return false;
  }
  if (reply.message.version_matched()) return true;
  set_problem(fmt::format("the debugger refuses version {}", options_.version));
  suspend();
  return false;
}

void Conversation::send_graphs() {
  std::vector<size_t> wanted = std::move(pending_);
  pending_.clear();
  if (!traits_.one_handshake) {  // every handshake is followed by all graphs
    wanted.clear();
    for (size_t i = 0; i < graphs_.size(); ++i) wanted.push_back(i);
    if (!traits_.many_graphs) wanted = {current_};
  }
  std::vector<std::string> graphs;
  for (const size_t i : wanted) {
    Result<std::string> bytes = graph_bytes(graphs_[i]->graph(), traits_);
    if (bytes.ok()) {
      graphs.push_back(std::move(*bytes));
    } else {
      set_problem(bytes.status().message());
    }
  }
  const bool many = wanted.size() > 1;
  BorrowedMemory borrowed;
  size_t graph = 0, offset = 0;
  const auto next = [&](grpc::ByteBuffer& message) {
    if (graph == graphs.size()) return false;
    const auto rest = std::as_bytes(std::span(graphs[graph])).subspan(offset);
    const auto slice = rest.first(std::min(rest.size(), kSliceBytes));
    const bool last = slice.size() == rest.size();
    message = chunk_message(borrowed, slice, many && last);
    offset = last ? 0 : offset + slice.size();
    if (last) ++graph;
    return true;
  };
  const Reply reply = caller_->stream(many ? "SendMultiGraphs" : "SendGraph", next);
  if (!caller_->wait_until_released(borrowed, kReturnTimeout)) set_problem("the transport still holds parts of a graph");
  if (!reply.ok) note("graph", reply);
}

}  // namespace msdbg::agent
