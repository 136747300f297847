// From a file or a buffer to the GraphProto inside: recognises the outer message and reports damage.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "msdbg/wire.h"
#include "msdbg/wire_fields.h"
#include "wire/graph_reader.h"

namespace msdbg {
namespace {

constexpr uint64_t kMaxFileBytes = (uint64_t{1} << 31) - 1;  // what one protobuf message may have

// A ModelProto has numbers in fields 1 and 3 and the graph in 4; a GraphProto has messages in 1, 3 and 4.
bool is_bare_graph(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  WireField field;
  while (reader.next(field)) {
    if (field.number == 1 || field.number == 3) return field.type == WireType::kBytes;
    if (field.number == 6) return true;
  }
  return false;
}

Status io_error(const std::string& path, std::string_view verb, int error) {
  const std::string_view next = error == ENOENT ? "check the path" : "check that this user may read it";
  return {Code::kIoError, fmt::format("{}: cannot {} ({}); {}", path, verb, std::strerror(error), next)};
}

class File {
 public:
  explicit File(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Status read_whole(const std::string& path, std::vector<std::byte>& out) {
  const File file(path);
  if (file.fd() < 0) return io_error(path, "open the graph file", errno);
  struct stat info {};
  if (::fstat(file.fd(), &info) != 0) return io_error(path, "read the graph file", errno);
  if (!S_ISREG(info.st_mode)) {
    return {Code::kIoError, fmt::format("{}: not a file; name a graphs/ms_output_trace_code_graph_<id>.pb", path)};
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > kMaxFileBytes) {
    return {Code::kUnsupported,
            fmt::format("{}: graph file of {}; a protobuf message ends at 2 GiB", path, format_bytes(size))};
  }
  out.resize(size);
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::read(file.fd(), out.data() + done, out.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(path, "read the graph file", errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  if (done != out.size()) {
    return {Code::kIoError,
            fmt::format("{}: shrank from {} to {} bytes while it was read; try again", path, out.size(), done)};
  }
  return {};
}

}  // namespace

Result<GraphBuilder> parse_graph(std::span<const std::byte> bytes, int rank, int id, std::vector<std::string>* notes) {
  if (bytes.empty()) return Status(Code::kCorrupt, "is empty");
  GraphReader graph(rank, id, notes);
  if (is_bare_graph(bytes)) {
    if (Status status = graph.add(bytes, 0); !status.ok()) return status;
    return graph.finish();
  }
  WireReader reader(bytes);
  WireField field;
  bool found = false;
  while (reader.next(field)) {
    if (!field.is(4, WireType::kBytes)) continue;
    found = true;
    if (Status status = graph.add(reader.bytes(field), field.start); !status.ok()) return status;
  }
  if (!reader.status().ok()) return reader.status();
  if (!found) return Status(Code::kCorrupt, "holds no graph");
  return graph.finish();
}

Result<GraphBuilder> read_graph_file(const std::string& path, int rank, int id, std::vector<std::string>* notes) {
  std::vector<std::byte> bytes;
  if (Status status = read_whole(path, bytes); !status.ok()) return status;
  Result<GraphBuilder> graph = parse_graph(bytes, rank, id, notes);
  if (graph) {
    graph->set_source_path(path);
    return graph;
  }
  const Status status = graph.status();
  return Status(status.code(),
                fmt::format("{}: graph file of {} bytes {}; copy it again from the training machine, or go on without "
                            "it: nodes are then named after the tensor files",
                            path, bytes.size(), status.message()));
}

}  // namespace msdbg
