// The processes that read: what arrives on a socket is done on all threads, and results go back as they are finished.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "msdbg/bytes.h"
#include "msdbg/log.h"
#include "msdbg/team.h"
#include "msdbg/threads.h"

namespace msdbg {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kFlushBytes = size_t{64} << 10;
constexpr std::chrono::milliseconds kFlushAfter{100};

bool read_all(int socket, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::read(socket, to, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    to += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

/// The next message; nothing at the end.
std::optional<std::string> read_message(int socket) {
  unsigned char length[kLengthBytes];
  if (!read_all(socket, reinterpret_cast<char*>(length), kLengthBytes)) return std::nullopt;
  uint64_t size = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) size |= uint64_t{length[i]} << (8 * i);
  if (size > kMostMessageBytes) return std::nullopt;
  std::string bytes(size, '\0');
  if (!read_all(socket, bytes.data(), size)) return std::nullopt;
  return bytes;
}

/// The way back to process 0. Any thread.
class Outbox {
 public:
  explicit Outbox(int socket) : socket_(socket) {}

  void send(std::string_view message) {
    const std::lock_guard lock(mutex_);
    write(message);
  }

  void result(uint64_t run, uint64_t item, const Result<std::string>& result) {
    const std::lock_guard lock(mutex_);
    results_.number(item);
    results_.flag(result.ok());
    results_.text(result ? *result : result.status().message());
    ++count_;
    if (results_.size() >= kFlushBytes || std::chrono::steady_clock::now() - flushed_ >= kFlushAfter) flush_results(run);
  }

  void flush(uint64_t run) {
    const std::lock_guard lock(mutex_);
    flush_results(run);
  }

 private:
  void flush_results(uint64_t run) {
    if (count_ == 0) return;
    ByteWriter head;
    head.byte(static_cast<unsigned>(TeamMessage::kResults));
    head.number(run);
    head.number(count_);
    count_ = 0;
    write(head.take() + results_.take());
    flushed_ = std::chrono::steady_clock::now();
  }

  void write(std::string_view message) {
    std::string framed;
    framed.reserve(kLengthBytes + message.size());
    for (size_t i = 0; i < kLengthBytes; ++i) framed += static_cast<char>(uint64_t{message.size()} >> (8 * i) & 0xff);
    framed += message;
    for (std::string_view rest = framed; !rest.empty();) {
      const ssize_t n = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // process 0 is gone, which the reading side notices
      rest.remove_prefix(static_cast<size_t>(n));
    }
  }

  const int socket_;
  std::mutex mutex_;
  ByteWriter results_;  // under mutex_
  uint64_t count_ = 0;  // under mutex_
  std::chrono::steady_clock::time_point flushed_ = std::chrono::steady_clock::now();
};

class Server {
 public:
  Server(int socket, const std::map<std::string, SharedHandler, std::less<>>& handlers) : outbox_(socket), handlers_(handlers) {}

  /// False if the message makes no sense.
  bool take(std::string_view message) {
    ByteReader in(message);
    switch (static_cast<TeamMessage>(in.byte())) {
      case TeamMessage::kBegin: {
        const uint64_t number = in.number();
        const std::string_view kind = in.text();
        const auto threads = static_cast<unsigned>(in.number(UINT16_MAX));
        const std::string_view common = in.text();
        const auto handler = handlers_.find(kind);
        if (!in.at_end() || handler == handlers_.end()) return false;
        begin(number, handler->second, common, thread_count(threads, UINT64_MAX));
        return true;
      }
      case TeamMessage::kParcel:
        return parcel(in);
      case TeamMessage::kEnd:
        jobs_.erase(in.number());
        return in.at_end();
      default:
        return false;
    }
  }

 private:
  struct Running {
    std::unique_ptr<SharedJob> job;
    unsigned threads = 1;
  };

  void begin(uint64_t number, const SharedHandler& handler, std::string_view common, unsigned threads) {
    Status why;
    try {
      Result<std::unique_ptr<SharedJob>> job = handler(common, threads);
      if (job) jobs_[number] = {std::move(*job), threads};
      why = job.status();
    } catch (const std::exception& error) {
      why = Status(Code::kInternal, error.what());
    }
    if (why.ok()) return;
    ByteWriter out;
    out.byte(static_cast<unsigned>(TeamMessage::kUnable));
    out.text(why.message());
    outbox_.send(out.take());
  }

  static Result<std::string> run(SharedJob& job, std::string_view item, unsigned worker) {
    try {
      return job.run(item, worker);
    } catch (const std::bad_alloc&) {
      return Status(Code::kOutOfMemory, "out of memory");
    } catch (const std::exception& error) {
      return Status(Code::kInternal, error.what());
    }
  }

  bool parcel(ByteReader& in) {
    const uint64_t number = in.number();
    std::vector<std::pair<uint64_t, std::string_view>> items;
    for (size_t left = in.items(kMostTeamItems); left > 0 && in.good(); --left) {
      const uint64_t item = in.number();
      items.emplace_back(item, in.text());
    }
    if (!in.at_end()) return false;
    const auto running = jobs_.find(number);
    if (running == jobs_.end() || !running->second.job) return true;  // process 0 has been told why
    SharedJob& job = *running->second.job;
    // The result does not matter: after an interrupt, nobody waits for the rest.
    (void)parallel_for(items.size(), running->second.threads, [&](uint64_t i, unsigned worker) {
      outbox_.result(number, items[i].first, run(job, items[i].second, worker));
      return Status();
    });
    outbox_.flush(number);
    return true;
  }

  Outbox outbox_;
  const std::map<std::string, SharedHandler, std::less<>>& handlers_;
  std::map<uint64_t, Running> jobs_;
};

}  // namespace

bool serve_team(int socket, const std::map<std::string, SharedHandler, std::less<>>& handlers) {
  Server server(socket, handlers);
  while (const std::optional<std::string> message = read_message(socket)) {
    if (!message->empty() && static_cast<TeamMessage>(message->front()) == TeamMessage::kStop) return true;
    if (!server.take(*message)) return false;
  }
  return true;
}

}  // namespace msdbg
