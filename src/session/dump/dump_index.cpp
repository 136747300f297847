// What a dump session tells its index.
#include "session/dump/dump_session.h"

namespace msdbg::dump {
namespace {

/// Which of the values in a container.
uint64_t part_of(const Value& value) {
  if (value.kind != FileKind::kContainer) return 0;
  return uint64_t{2} * value.slot.index + (value.slot.io == Io::kInput ? 1 : 2);
}

}  // namespace

DumpSession::~DumpSession() { DumpSession::before_exit(); }

void DumpSession::before_exit() {
  if (index_) index_->detach();
}

void DumpSession::use_index(std::shared_ptr<StatsIndex> index, bool plain, bool complete) {
  std::vector<std::string> directories;
  for (const KnownDirectory& directory : data_.directories) directories.push_back(directory.path);
  index->attach(*this, directories, plain, complete);
  use_stats_store(index);
  index_ = std::move(index);
}

void DumpSession::check_ends() {
  if (index_) index_->save();
}

const Value* DumpSession::find_readable(const TensorId& id) const {
  const Value* value = find(id);
  return value == nullptr || value->kind == FileKind::kStatistics || !format_problem(*value).ok() ? nullptr : value;
}

std::optional<uint32_t> DumpSession::directory_of(const TensorId& id) const {
  const Value* value = find_readable(id);
  return value == nullptr ? std::nullopt : std::optional(value->directory);
}

std::optional<FilePlace> DumpSession::locate(const TensorId& id) const {
  const Value* value = find_readable(id);
  if (value == nullptr) return std::nullopt;
  const Node& node = graph_data(id.rank, id.graph)->graph->node(id.node);
  uint64_t context = static_cast<uint64_t>(value->note);
  if (id.slot.io == Io::kOutput && id.slot.index < node.outputs.size() && node.outputs[id.slot.index].shape) {
    const Shape& shape = *node.outputs[id.slot.index].shape;
    context = hash_of({reinterpret_cast<const char*>(shape.data()), shape.size() * sizeof shape[0]}, context + 1);
  }
  return FilePlace{value->directory, value->file(), context, part_of(*value)};
}

void DumpSession::for_each_file(const std::function<void(const FilePlace& place)>& take) const {
  const auto walk = [&](const StepIndex& index) {
    for (const Value& value : index.values()) {
      if (value.kind != FileKind::kStatistics) take({value.directory, value.file(), 0, part_of(value)});
    }
  };
  for (const auto& [key, data] : data_.data) {
    walk(data.constants);
    for (const auto& [step, index] : data.steps) walk(index);
  }
}

}  // namespace msdbg::dump
