#include "session/dump/container_list.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "msdbg/threads.h"
#include "session/dump/container.h"
#include "session/dump/container_value.h"
#include "session/dump/directory.h"

namespace msdbg::dump {
namespace {

/// Fewer are not worth a thread.
constexpr uint64_t kContainersPerTask = 64;

/// What the name of a converted tensor keeps of its container's: MindInsight cuts the operator's name.
using ConvertedKey = std::tuple<int64_t, int64_t, uint64_t, std::string_view, Io, uint32_t>;
ConvertedKey key_of(const FileName& name) { return {name.task, name.stream, name.timestamp, name.op_type, name.io, name.slot}; }

struct Unpacked {
  bool read = false;
  std::vector<ListedFile> tensors;
};

/// The tensors of one container as files.
Unpacked unpack(const std::string& directory, const ListedFile& file) {
  Unpacked out;
  const Result<File> opened = File::open(join_path(directory, std::string(file.path)));
  if (!opened) return out;
  const Result<Container> container = read_container(*opened);
  if (!container) return out;
  out.read = !container->tensors.empty();
  for (const ContainerTensor& tensor : container->tensors) {
    ListedFile listed = file;
    listed.name.kind = FileKind::kContainer;
    listed.name.io = tensor.slot.io;
    listed.name.slot = tensor.slot.index;
    listed.name.format = container_host_format(tensor);
    const DType dtype = container_dtype(tensor.type);
    listed.name.dtype = dtype == DType::kUnknown ? "" : dtype_name(dtype == DType::kInt4 ? DType::kInt8 : dtype);
    out.tensors.push_back(std::move(listed));
  }
  return out;
}

}  // namespace

void list_containers(const std::string& directory, std::vector<ListedFile>& files) {
  std::vector<size_t> containers;
  for (size_t at = 0; at < files.size(); ++at) {
    if (files[at].name.kind == FileKind::kDevice) containers.push_back(at);
  }
  if (containers.empty()) return;
  std::vector<Unpacked> unpacked(containers.size());
  const uint64_t tasks = (containers.size() + kContainersPerTask - 1) / kContainersPerTask;
  // An interrupt leaves the rest as containers that were not read; the command ends anyway.
  (void)parallel_for(tasks, 0, [&](uint64_t task, unsigned) {
    const uint64_t end = std::min<uint64_t>(containers.size(), (task + 1) * kContainersPerTask);
    for (uint64_t at = task * kContainersPerTask; at < end; ++at) unpacked[at] = unpack(directory, files[containers[at]]);
    return Status();
  });
  // The converter writes next to the containers; its files come first.
  std::set<ConvertedKey> converted;
  for (const ListedFile& file : files) {
    if (file.name.kind == FileKind::kNpy) converted.insert(key_of(file.name));
  }
  std::vector<ListedFile> all;
  all.reserve(files.size());
  size_t next = 0;
  for (size_t at = 0; at < files.size(); ++at) {
    if (next == containers.size() || containers[next] != at) {
      all.push_back(std::move(files[at]));
      continue;
    }
    Unpacked& container = unpacked[next++];
    if (!container.read) all.push_back(std::move(files[at]));
    for (ListedFile& tensor : container.tensors) {
      if (!converted.contains(key_of(tensor.name))) all.push_back(std::move(tensor));
    }
  }
  files = std::move(all);
}

}  // namespace msdbg::dump
