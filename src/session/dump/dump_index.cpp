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

uint64_t FilePlace::context() const {
  const auto context = static_cast<uint64_t>(note);
  if (slot.io != Io::kOutput || slot.index >= node->outputs.size() || !node->outputs[slot.index].shape) return context;
  const Shape& shape = *node->outputs[slot.index].shape;
  return hash_of({reinterpret_cast<const char*>(shape.data()), shape.size() * sizeof shape[0]}, context + 1);
}

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

std::optional<FilePlace> DumpSession::locate(const TensorId& id) const {
  const Value* value = find(id);
  if (value == nullptr || value->kind == FileKind::kStatistics || !format_problem(*value).ok()) return std::nullopt;
  const Node& node = graph_data(id.rank, id.graph)->graph->node(id.node);
  return FilePlace{value->directory, value->file(), part_of(*value), value->note, &node, id.slot};
}

void DumpSession::for_each_file(const std::function<void(const FilePlace& place)>& take) const {
  const auto walk = [&](const StepIndex& index) {
    for (const Value& value : index.values()) {
      if (value.kind != FileKind::kStatistics) take({value.directory, value.file(), part_of(value)});
    }
  };
  for (const auto& [key, data] : data_.data) {
    walk(data.constants);
    for (const auto& [step, index] : data.steps) walk(index);
  }
}

}  // namespace msdbg::dump
