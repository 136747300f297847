#include "session/dump/container_list.h"

#include <algorithm>

#include "msdbg/threads.h"
#include "session/dump/container.h"
#include "session/dump/container_value.h"
#include "session/dump/directory.h"

namespace msdbg::dump {
namespace {

/// Fewer are not worth a thread.
constexpr uint64_t kContainersPerTask = 64;

/// The files of the tensors of one container.
std::vector<ListedFile> tensors_of(const std::string& directory, const ListedFile& file) {
  std::vector<ListedFile> out;
  const Result<File> opened = File::open(join_path(directory, std::string(file.path)));
  if (!opened) return out;
  const Result<Container> container = read_container(*opened);
  if (!container) return out;
  for (const ContainerTensor& tensor : container->tensors) {
    ListedFile listed = file;
    listed.name.kind = FileKind::kContainer;
    listed.name.io = tensor.slot.io;
    listed.name.slot = tensor.slot.index;
    listed.name.format = container_host_format(tensor);
    const DType dtype = container_dtype(tensor.type);
    listed.name.dtype = dtype == DType::kUnknown ? "" : dtype_name(dtype == DType::kInt4 ? DType::kInt8 : dtype);
    out.push_back(std::move(listed));
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
  std::vector<std::vector<ListedFile>> tensors(containers.size());
  const uint64_t tasks = (containers.size() + kContainersPerTask - 1) / kContainersPerTask;
  // An interrupt leaves the rest as containers that were not read; the command ends anyway.
  (void)parallel_for(tasks, 0, [&](uint64_t task, unsigned) {
    const uint64_t end = std::min<uint64_t>(containers.size(), (task + 1) * kContainersPerTask);
    for (uint64_t at = task * kContainersPerTask; at < end; ++at) tensors[at] = tensors_of(directory, files[containers[at]]);
    return Status();
  });
  std::vector<ListedFile> all;
  all.reserve(files.size());
  size_t next = 0;
  for (size_t at = 0; at < files.size(); ++at) {
    if (next == containers.size() || containers[next] != at) {
      all.push_back(std::move(files[at]));
      continue;
    }
    std::vector<ListedFile>& of_this = tensors[next++];
    if (of_this.empty()) all.push_back(std::move(files[at]));
    else std::move(of_this.begin(), of_this.end(), std::back_inserter(all));
  }
  files = std::move(all);
}

}  // namespace msdbg::dump
