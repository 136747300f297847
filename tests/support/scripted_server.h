// A debugger that answers from a list, in this process: the other side of the wire for tests of a training process.
//
// Records every call byte by byte in order of arrival; heartbeats separately, because they arrive at any time. WaitCMD gets the
// next answer in the list and is held while the list is empty.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "debug_grpc.pb.h"
#include "msdbg/sanitizers.h"

namespace msdbg::test {

/// The answer to a call.
struct Answer {
  std::string bytes;  ///< a serialized EventReply
  grpc::Status status;

  static Answer of(const debugger::EventReply& reply) { return {reply.SerializeAsString(), grpc::Status::OK}; }
  static Answer ok() { return {}; }
  static Answer failed() { return {std::string("\x08\x01", 2), {}}; }
  static Answer pending() { return {std::string("\x08\x02", 2), {}}; }
  static Answer broken() { return {{}, grpc::Status(grpc::StatusCode::INTERNAL, "broken on purpose")}; }
  static Answer version(bool matched) { return {std::string(matched ? "\x30\x01" : "\x30\x00", 2), {}}; }
  static Answer exit(bool value = true) { return {std::string(value ? "\x10\x01" : "\x10\x00", 2), {}}; }
  static Answer run(const std::string& level = "step") {
    debugger::EventReply reply;
    reply.mutable_run_cmd()->set_run_level(level);
    reply.mutable_run_cmd()->set_run_steps(1);
    return of(reply);
  }
  static Answer recheck() { return run("recheck"); }
  static Answer run_node(const std::string& name = "") {
    debugger::EventReply reply;
    reply.mutable_run_cmd()->set_run_level("node");
    reply.mutable_run_cmd()->set_node_name(name);
    return of(reply);
  }
  static Answer remove(int id) {
    debugger::EventReply reply;
    reply.mutable_set_cmd()->set_delete_(true);
    reply.mutable_set_cmd()->set_id(id);
    return of(reply);
  }
};

/// Builds a SetCMD: `Watch(1, condition).param("max_gt", 1.0).leaf("Default/Add-op1").answer()`.
class Watch {
 public:
  Watch(int id, debugger::WatchCondition::Condition condition) {
    command_.set_id(id);
    command_.mutable_watch_condition()->set_condition(condition);
  }
  Watch& leaf(const std::string& name) { return node(name, "leaf"); }
  Watch& scope(const std::string& name) { return node(name, "scope"); }
  Watch& node(const std::string& name, const std::string& type) {
    command_.add_watch_nodes()->set_node_name(name);
    command_.mutable_watch_nodes()->rbegin()->set_node_type(type);
    return *this;
  }
  Watch& param(const std::string& name, double value) {
    auto* added = command_.mutable_watch_condition()->add_params();
    added->set_name(name);
    added->set_value(value);
    return *this;
  }
  Watch& unused(const std::string& name) {
    auto* added = command_.mutable_watch_condition()->add_params();
    added->set_name(name);
    added->set_disabled(true);
    return *this;
  }
  Watch& value(float value) {
    command_.mutable_watch_condition()->set_value(value);
    return *this;
  }
  Answer answer() const {
    debugger::EventReply reply;
    *reply.mutable_set_cmd() = command_;
    return Answer::of(reply);
  }

 private:
  debugger::SetCMD command_;
};

/// Builds a ViewCMD.
class View {
 public:
  explicit View(debugger::ViewCMD::Level level) { command_.set_level(level); }
  View& tensor(const std::string& name, const std::string& slot = "0", const std::string& iter = "",
               bool truncate = false) {
    auto* added = command_.add_tensors();
    added->set_node_name(name);
    added->set_slot(slot);
    added->set_iter(iter);
    added->set_truncate(truncate);
    return *this;
  }
  Answer answer() const {
    debugger::EventReply reply;
    *reply.mutable_view_cmd() = command_;
    return Answer::of(reply);
  }

 private:
  debugger::ViewCMD command_;
};

/// One rpc as it arrived.
struct Call {
  std::string rpc;
  std::vector<std::string> messages;  ///< serialized; several only for streams
  std::chrono::steady_clock::time_point begun;  ///< of its first message
  bool answered = false;
  bool cancelled = false;  ///< by the client

  template <typename Message>
  Message as(size_t index = 0) const {
    Message message;
    message.ParseFromString(index < messages.size() ? messages[index] : std::string());
    return message;
  }
  debugger::Metadata metadata() const { return as<debugger::Metadata>(); }
};

class ScriptedServer : public grpc::CallbackGenericService {
 public:
  explicit ScriptedServer(int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &port_);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.RegisterCallbackGenericService(this);
    fixed_["SendMetadata"] = Answer::version(true);
    handed_over(this);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedServer() override { stop(); }

  /// The port in use; 0 if it could not be opened.
  int port() const { return server_ ? port_ : 0; }

  /// Aborts calls in progress and closes the port.
  void stop() {
    if (!server_) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    release_held();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
    taken_over(this);
  }

  /// Adds answers to the list of WaitCMD.
  void script(std::vector<Answer> answers) {
    {
      const std::lock_guard lock(mutex_);
      for (Answer& answer : answers) script_.push_back(std::move(answer));
    }
    release_held();
  }
  /// The answer to WaitCMD when the list is empty; without it, WaitCMD is held.
  void then_always(Answer answer) {
    {
      const std::lock_guard lock(mutex_);
      fixed_["WaitCMD"] = std::move(answer);
    }
    release_held();
  }
  /// The answer to every call of another rpc.
  void always(const std::string& rpc, Answer answer) {
    const std::lock_guard lock(mutex_);
    fixed_[rpc] = std::move(answer);
  }

  /// Ends calls of `rpc` before anything is read.
  void refuse(const std::string& rpc) {
    const std::lock_guard lock(mutex_);
    refused_.insert(rpc);
  }

  std::vector<Call> calls() const {
    const std::lock_guard lock(mutex_);
    std::vector<Call> found;
    for (const auto& call : calls_) found.push_back(*call);
    return found;
  }
  std::vector<Call> calls(std::string_view rpc) const {
    std::vector<Call> found;
    for (Call& call : calls()) {
      if (call.rpc == rpc) found.push_back(std::move(call));
    }
    return found;
  }
  std::vector<Call> heartbeats() const {
    const std::lock_guard lock(mutex_);
    return heartbeats_;
  }
  /// "SendMetadata SendGraph WaitCMD ...": the order of arrival.
  std::string order() const {
    std::string text;
    for (const Call& call : calls()) text += (text.empty() ? "" : " ") + call.rpc;
    return text;
  }
  /// Number of answered calls of `rpc`. For use inside wait_until().
  size_t answered(std::string_view rpc) const {
    size_t count = 0;
    for (const auto& call : calls_) count += call->rpc == rpc && call->answered ? 1 : 0;
    return count;
  }
  /// Whether the client has cancelled all but the first `count` calls. For use inside wait_until().
  bool cancelled_behind(size_t count) const {
    return std::all_of(calls_.begin() + static_cast<std::ptrdiff_t>(count), calls_.end(), [](const auto& call) { return call->cancelled; });
  }
  /// False if `ready`, which is called under the lock, did not become true in time.
  template <typename Ready>
  bool wait_until(Ready ready, std::chrono::milliseconds timeout = std::chrono::seconds(60)) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout, ready);
  }
  bool wait_for_held(std::chrono::milliseconds timeout = std::chrono::seconds(60)) const {
    return wait_until([this] { return !held_.empty(); }, timeout);
  }
  bool wait_for_heartbeats(size_t count, std::chrono::milliseconds timeout = std::chrono::seconds(60)) const {
    return wait_until([this, count] { return heartbeats_.size() >= count; }, timeout);
  }

 private:
  class Reactor : public grpc::ServerGenericBidiReactor {
   public:
    Reactor(ScriptedServer& server, std::string rpc, bool refused) : server_(server), call_(std::make_shared<Call>()) {
      call_->rpc = std::move(rpc);
      handed_over(this);
      if (refused) {
        Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "refused on purpose"));
      } else {
        StartRead(&message_);
      }
    }
    void OnReadDone(bool ok) override {
      taken_over(this);
      if (call_->messages.empty()) call_->begun = std::chrono::steady_clock::now();
      if (ok) {
        call_->messages.push_back(text_of(message_));
        handed_over(this);
        StartRead(&message_);
        return;
      }
      handed_over(this);
      // Opened before its message existed and never used.
      if (call_->messages.empty() && call_->rpc == "WaitCMD") return answer({{}, grpc::Status::CANCELLED});
      server_.arrived(this, call_);
    }
    void answer(const Answer& answer) {
      taken_over(this);
      if (!answer.status.ok()) {
        handed_over(this);
        return Finish(answer.status);
      }
      grpc::Slice slice(answer.bytes);
      reply_ = grpc::ByteBuffer(&slice, 1);
      handed_over(this);
      StartWriteAndFinish(&reply_, {}, grpc::Status::OK);
    }
    void OnCancel() override {
      taken_over(this);
      server_.cancelled(this, *call_);
      handed_over(&server_);
    }
    void OnDone() override {
      taken_over(this);
      handed_over(&server_);  // which waits for this before it ends
      delete this;
    }

    bool cancelled = false;  ///< under the server's lock

   private:
    static std::string text_of(const grpc::ByteBuffer& buffer) {
      std::vector<grpc::Slice> slices;
      std::string text;
      if (!buffer.Dump(&slices).ok()) return text;
      for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      return text;
    }
    ScriptedServer& server_;
    std::shared_ptr<Call> call_;
    grpc::ByteBuffer message_, reply_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    taken_over(this);
    const std::string& method = context->method();
    const std::string rpc = method.substr(method.rfind('/') + 1);
    const std::lock_guard lock(mutex_);
    return new Reactor(*this, rpc, refused_.contains(rpc));
  }

  void arrived(Reactor* reactor, const std::shared_ptr<Call>& call) {
    std::optional<Answer> answer;
    {
      const std::lock_guard lock(mutex_);
      if (call->rpc == "SendHeartbeat") {
        heartbeats_.push_back(*call);
      } else {
        calls_.push_back(call);
      }
      changed_.notify_all();
      if (call->rpc == "WaitCMD" && !script_.empty() && !stopping_) {
        answer = std::move(script_.front());
        script_.pop_front();
      } else if (const auto fixed = fixed_.find(call->rpc); fixed != fixed_.end()) {
        answer = fixed->second;
      } else if (call->rpc != "WaitCMD") {
        answer = Answer::ok();
      } else if (stopping_ || reactor->cancelled) {
        answer = Answer{{}, grpc::Status::CANCELLED};
      } else {
        held_.push_back({reactor, call});
      }
      if (answer) call->answered = true;
      changed_.notify_all();
    }
    if (answer) reactor->answer(*answer);
  }

  /// Answers held calls while there are answers.
  void release_held() {
    while (true) {
      Reactor* reactor = nullptr;
      Answer answer;
      {
        const std::lock_guard lock(mutex_);
        if (held_.empty()) return;
        if (stopping_) {
          answer = {{}, grpc::Status::CANCELLED};
        } else if (!script_.empty()) {
          answer = std::move(script_.front());
          script_.pop_front();
        } else if (const auto fixed = fixed_.find("WaitCMD"); fixed != fixed_.end()) {
          answer = fixed->second;
        } else {
          return;
        }
        reactor = held_.front().first;
        held_.front().second->answered = true;
        held_.pop_front();
      }
      reactor->answer(answer);
    }
  }

  void cancelled(Reactor* reactor, Call& call) {
    {
      const std::lock_guard lock(mutex_);
      reactor->cancelled = call.cancelled = true;
      changed_.notify_all();
      auto held = held_.begin();
      while (held != held_.end() && held->first != reactor) ++held;
      if (held == held_.end()) return;
      held_.erase(held);
      changed_.notify_all();
    }
    reactor->answer({{}, grpc::Status::CANCELLED});
  }

  int port_ = 0;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Answer> script_;
  std::map<std::string, Answer> fixed_;
  std::set<std::string> refused_;
  std::vector<std::shared_ptr<Call>> calls_;
  std::vector<Call> heartbeats_;
  std::deque<std::pair<Reactor*, std::shared_ptr<Call>>> held_;
  bool stopping_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace msdbg::test
