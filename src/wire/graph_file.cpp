// Extracts the GraphProto from a file or a buffer: recognises the outer message and reports damage.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "msdbg/file.h"
#include "msdbg/threads.h"
#include "msdbg/wire.h"
#include "msdbg/wire_fields.h"
#include "wire/graph_reader.h"

namespace msdbg {
namespace {

constexpr uint64_t kMaxFileBytes = (uint64_t{1} << 31) - 1;  // the limit of one protobuf message

// A ModelProto has numbers in fields 1 and 3, and the graph in 4; a GraphProto has messages in 1, 3 and 4.
bool is_bare_graph(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  WireField field;
  while (reader.next(field)) {
    if (field.number == 1 || field.number == 3) return field.type == WireType::kBytes;
    if (field.number == 6) return true;
  }
  return false;
}

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

/// A file in memory.
struct Contents {
  std::unique_ptr<std::byte, FreeMemory> bytes;
  size_t size = 0;
};

/// Of a large file in pages of 2 MiB, where the system has them: with small ones, each costs a fault.
void reserve(Contents& out, size_t size) {
  constexpr size_t kPage = size_t{2} << 20;
  const size_t room = (size + kPage - 1) / kPage * kPage;
  out.bytes.reset(static_cast<std::byte*>(size < kPage ? std::malloc(std::max<size_t>(size, 1)) : std::aligned_alloc(kPage, room)));
  if (!out.bytes) throw std::bad_alloc();
  if (size >= kPage) ::madvise(out.bytes.get(), size / kPage * kPage, MADV_HUGEPAGE);
  out.size = size;
}

Status read_whole(const std::string& path, Contents& out) {
  const Result<File> file = File::open(path);
  if (!file) return file.status();
  if (file->size() > kMaxFileBytes) {
    return {Code::kUnsupported,
            fmt::format("{}: graph file of {}; a protobuf message ends at 2 GiB", path, format_bytes(file->size()))};
  }
  reserve(out, file->size());
  // Most of the time is spent on filling new pages.
  constexpr size_t kPart = size_t{4} << 20;
  return parallel_for((out.size + kPart - 1) / kPart, 0, [&](uint64_t part, unsigned) {
    const size_t start = part * kPart;
    return file->read(start, {out.bytes.get() + start, std::min(kPart, out.size - start)});
  });
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
  Contents contents;
  if (Status status = read_whole(path, contents); !status.ok()) return status;
  Result<GraphBuilder> graph = parse_graph({contents.bytes.get(), contents.size}, rank, id, notes);
  if (graph) {
    graph->set_source_path(path);
    return graph;
  }
  const Status status = graph.status();
  return Status(status.code(),
                fmt::format("{}: graph file of {} bytes {}; copy it again from the training machine, or go on without "
                            "it: nodes are then named after the tensor files",
                            path, contents.size, status.message()));
}

}  // namespace msdbg
