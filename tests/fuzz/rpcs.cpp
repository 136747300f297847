// A training that talks to a listener: calls of all nine methods, valid or not, in any order, mixed with commands of the user at
// the prompt. The calls enter where gRPC's would, each on its own stream, without sockets or a second thread.
//
// The input is a sequence of actions, each a byte with its arguments after it: 0 to 8 a call of that method, 9 to 13 see below, 16
// and more a command of the owner (live_owner.h).
#include <map>

#include "fuzz/live_owner.h"
#include "session/live/grpc_transport.h"
#include "session/live/live_session.h"

namespace msdbg::live {
namespace {

constexpr uint64_t kMemory = 16 << 20;

/// Plays gRPC's server for one call.
class Stream final : public grpc::ServerCallbackReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Stream(CallHandler& handler, Rpc rpc, uint64_t number, const std::string& peer) : call_(new IncomingCall(handler, rpc, number, peer)) {
    BindReactor(call_);
  }
  ~Stream() override {
    if (!finished_) cancel();
    call_->OnDone();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void message(std::string_view bytes) {
    if (place_ == nullptr) return;
    *std::exchange(place_, nullptr) = IncomingCall::buffer_of(std::string(bytes));
    call_->OnReadDone(true);
  }
  void complete() {
    if (std::exchange(place_, nullptr) != nullptr) call_->OnReadDone(false);
    if (std::exchange(head_wanted_, false)) call_->OnSendInitialMetadataDone(true);
  }
  void cancel() {
    call_->OnCancel();
    complete();
  }
  bool finished() const { return finished_; }
  const debugger::EventReply& reply() const { return reply_; }

  // Requests of the reactor.
  void Read(grpc::ByteBuffer* place) override { place_ = place; }
  void Write(const grpc::ByteBuffer*, grpc::WriteOptions) override { fuzz::finding("a call that is answered twice"); }
  void WriteAndFinish(const grpc::ByteBuffer* message, grpc::WriteOptions, grpc::Status) override {
    grpc::Slice slice;
    fuzz::require(message->DumpToSingleSlice(&slice).ok() && reply_.ParseFromArray(slice.begin(), static_cast<int>(slice.size())),
                  "a reply that no client can read");
    Finish({});
  }
  void Finish(grpc::Status status) override {
    fuzz::require(!finished_, "a call that ends twice");
    if (status.error_code() == grpc::StatusCode::INTERNAL) fuzz::finding(status.error_message());
    finished_ = true;
  }
  void SendInitialMetadata() override { head_wanted_ = true; }

 private:
  grpc::internal::ServerReactor* reactor() override { return call_; }
  void CallOnDone() override {}

  IncomingCall* call_;  // deleted by OnDone()
  grpc::ByteBuffer* place_ = nullptr;
  bool finished_ = false, head_wanted_ = false;
  debugger::EventReply reply_;
};

}  // namespace

/// The transport of listen(), which runs the next action of the input whenever the session waits for the training.
class CallsInProcess final : public Transport {
 public:
  explicit CallsInProcess(fuzz::Input& input) : input_(input) {
    auto acceptor = Acceptor::open("127.0.0.1", 0);
    fuzz::require(acceptor.ok(), "no port to listen on");
    listener_.reset(new GrpcListener(std::move(*acceptor), nullptr, 1, kMemory));
    inner_ = std::make_unique<GrpcTransport>(listener_, 0);
    connect();
  }

  bool next(WireEvent* event, Clock::time_point deadline, bool stop_on_interrupt) override {
    for (;;) {
      if (inner_->next(event, Clock::time_point::min(), stop_on_interrupt)) return true;
      if (deadline == Clock::time_point::min()) return false;
      if (!act()) return inner_->next(event, Clock::time_point::min(), stop_on_interrupt);
    }
  }
  Status answer(const debugger::EventReply& reply) override { return inner_->answer(reply); }
  void answer_ahead(const debugger::EventReply& reply, uint64_t times) override { inner_->answer_ahead(reply, times); }
  Passed stop_ahead() override { return inner_->stop_ahead(); }
  Passed passed_ahead() override { return inner_->passed_ahead(); }
  void expect(std::shared_ptr<ValueUpload> upload) override { inner_->expect(std::move(upload)); }
  uint64_t received_bytes() const override { return inner_->received_bytes(); }
  void answer_unattended(std::vector<debugger::EventReply> replies) override { inner_->answer_unattended(std::move(replies)); }
  size_t stop_unattended() override { return inner_->stop_unattended(); }
  std::string address() const override { return inner_->address(); }
  int descriptor() const override { return inner_->descriptor(); }
  void acknowledge() override { inner_->acknowledge(); }

  /// Runs the training's next action; skips those of the owner. At the end of the input the connection breaks.
  bool act() {
    uint8_t action = 16;
    while (action >= 16 && !input_.empty()) action = input_.byte();
    if (action < 16) {
      act(action);
      return true;
    }
    return std::exchange(connected_, false) ? (close(), true) : false;
  }

  void act(uint8_t action) {
    if (action < kRpcCount) return call(static_cast<Rpc>(action));
    switch (action) {
      case 9: return close();
      case 10: return connect();
      case 11: return upload(0);
      case 13: return upload(input_.byte());
      case 12: return hold(input_.byte());
      default: return;
    }
  }

 private:
  static constexpr const char* kPeers[] = {"fd:1", "fd:2"};

  void connect() {
    // A connection that is open keeps its rank.
    for (const char* peer : kPeers) {
      if (listener_->connections_.count(peer) == 0) listener_->connections_[peer] = {"127.0.0.1:1", nullptr, false, false};
    }
    connected_ = true;
  }
  void close() {
    for (const char* peer : kPeers) listener_->on_disconnected(peer);
    streams_.clear();
  }

  /// Null for a refused call.
  Stream* open(Rpc rpc, const char* peer) {
    std::erase_if(streams_, [](const auto& stream) { return stream->finished(); });
    if (streams_.size() >= 8) streams_.erase(streams_.begin());
    const uint64_t number = next_call_++;
    if (!listener_->may_call(rpc, peer, number).ok()) return nullptr;
    CallHandler& handler = *listener_;
    return streams_.emplace_back(std::make_unique<Stream>(handler, rpc, number, peer)).get();
  }

  /// Bits of a byte: 0 and 1 the end of the call (complete, cancelled, left open), 2 the connection, 3 to 5 the number of messages.
  void call(Rpc rpc) {
    const uint8_t how = input_.byte();
    Stream* stream = open(rpc, kPeers[how >> 2 & 1]);
    for (int messages = how >> 3 & 7; messages > 0; --messages) {
      const std::string_view message = input_.chunk();
      if (rpc == Rpc::kWaitCmd) wait_ = message;
      if (stream != nullptr) stream->message(message);
    }
    if (stream == nullptr || (how & 3) == 3) return;
    if ((how & 3) == 2) return stream->cancel();
    stream->complete();
  }

  void send(Rpc rpc, const std::vector<std::string>& messages) {
    Stream* stream = open(rpc, kPeers[0]);
    if (stream == nullptr) return;
    for (const std::string& message : messages) stream->message(message);
    stream->complete();
  }

  /// WaitCMD with the metadata of the previous one, `steps` later.
  void hold(uint8_t steps) {
    debugger::Metadata metadata;
    (void)metadata.ParseFromString(wait_);
    metadata.set_cur_step(static_cast<int>(static_cast<unsigned>(metadata.cur_step()) + steps));
    wait_ = metadata.SerializeAsString();
    send(Rpc::kWaitCmd, {wait_});
  }

  /// Answers the open view with a type, a shape and bytes of the input. `wrong` selects an error in the answer: bits 0 and 1 its
  /// order, an early end or a duplicate; the other bits its position.
  void upload(uint8_t wrong) {
    debugger::ViewCMD view;
    for (const auto& stream : streams_) {
      if (stream->reply().has_view_cmd()) view = stream->reply().view_cmd();
    }
    const int type = input_.byte();
    const int64_t rows = input_.byte(), columns = static_cast<int8_t>(input_.byte());
    const std::string content(input_.chunk());
    std::vector<std::string> messages;
    for (const debugger::TensorProto& asked : view.tensors()) {
      debugger::TensorBase base;
      base.set_data_type(type);
      base.add_shape(rows);
      base.add_shape(columns);
      base.set_data_size(static_cast<int64_t>(content.size()));
      debugger::TensorSummary summary;
      *summary.mutable_tensor_base() = base;
      summary.mutable_statistics()->ParseFromString(content);
      debugger::TensorProto tensor = asked;
      tensor.add_dims(rows);
      tensor.add_dims(columns);
      tensor.set_data_type(type);
      tensor.set_tensor_content(content);
      tensor.set_finished(true);
      messages.push_back(view.level() == debugger::ViewCMD::base         ? base.SerializeAsString()
                         : view.level() == debugger::ViewCMD::statistics ? summary.SerializeAsString()
                                                                         : tensor.SerializeAsString());
    }
    if (const size_t at = wrong >> 2; at < messages.size()) {
      if ((wrong & 3) == 1) std::swap(messages[at], messages.back());
      if ((wrong & 3) == 2) messages.resize(at);
      if ((wrong & 3) == 3) messages.push_back(messages[at]);
    }
    send(view.level() == debugger::ViewCMD::base         ? Rpc::kSendTensorBase
         : view.level() == debugger::ViewCMD::statistics ? Rpc::kSendTensorStats
                                                         : Rpc::kSendTensors, messages);
    hold(0);
  }

  fuzz::Input& input_;
  std::shared_ptr<GrpcListener> listener_;
  std::unique_ptr<GrpcTransport> inner_;
  std::vector<std::unique_ptr<Stream>> streams_;  // declared after listener_: destroyed before it
  uint64_t next_call_ = 1;
  std::string wait_;
  bool connected_ = false;
};

}  // namespace msdbg::live

using namespace msdbg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::SetLogHandler(nullptr);
  fuzz::Input input(data, size);
  auto transport = std::make_unique<live::CallsInProcess>(input);
  live::CallsInProcess& training = *transport;
  live::SessionOptions options;
  options.mem_limit_bytes = live::kMemory;
  options.view_deadline = std::chrono::milliseconds(50);
  live::LiveSessionImpl session(std::move(transport), options);
  while (!input.empty()) {
    const uint8_t action = input.byte();
    if (action < 16) training.act(action);
    else fuzz::command(session, action - 16, input);
  }
  (void)session.state();
  fuzz::walk(session);
  return 0;
}
