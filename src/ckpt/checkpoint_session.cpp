#include "ckpt/checkpoint_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_set>

namespace msdbg::ckpt {
namespace {

constexpr std::array<std::string_view, 8> kStatePrefixes = {"moments.", "moment1.", "moment2.",     "accum.",
                                                            "accums.",  "vhat.",    "mean_square.", "mean_grad."};

/// Reads elements from the pieces of a parameter.
class PiecesReader : public ElementReader {
 public:
  PiecesReader(std::shared_ptr<File> file, const Entry& entry)
      : ElementReader(entry.dtype, entry.count), file_(std::move(file)), extents_(entry.extents) {}

 private:
  Status fill(uint64_t first, std::span<std::byte> out) override {
    uint64_t skip = first * item_size(dtype());
    for (const Extent& extent : extents_) {
      if (out.empty()) break;
      if (skip >= extent.bytes) {
        skip -= extent.bytes;
        continue;
      }
      const std::span part = out.first(std::min<uint64_t>(out.size(), extent.bytes - skip));
      if (Status status = file_->read(extent.offset + skip, part); !status.ok()) return status;
      out = out.subspan(part.size());
      skip = 0;
    }
    MSDBG_CHECK(out.empty());
    return {};
  }

  std::shared_ptr<File> file_;
  const std::vector<Extent> extents_;
};

GraphPtr graph_of(const Contents& contents) {
  // No operator shows which parameters an optimizer updates, but the optimizer's own state names them.
  std::unordered_set<std::string_view> updated;
  for (const Entry& entry : contents.entries) {
    for (const std::string_view prefix : kStatePrefixes) {
      if (entry.name.starts_with(prefix)) updated.insert(std::string_view(entry.name).substr(prefix.size()));
    }
  }
  GraphBuilder builder(0, 0);
  builder.set_name("checkpoint");
  builder.set_from_file(false);
  builder.set_source_path(contents.file->path());
  for (const Entry& entry : contents.entries) {
    Node node;
    node.name = entry.name;
    node.op = "Parameter";
    node.kind = NodeKind::kParameter;
    node.trainable = updated.contains(entry.name);
    node.outputs = {{entry.dtype, entry.shape}};
    builder.add(std::move(node));
  }
  return builder.build();
}

void join(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += "; ";
  text += more;
}

}  // namespace

CheckpointSession::CheckpointSession(const std::string& path, Contents contents) : contents_(std::move(contents)) {
  info_.kind = SessionKind::kCheckpoint;
  info_.source = path;
  info_.short_name = std::filesystem::path(path).filename().string();
  info_.layout = contents_.facts.format;
  graphs_.push_back(graph_of(contents_));
}

std::vector<int64_t> CheckpointSession::steps(int rank, int graph) const {
  return rank == 0 && graph == 0 ? std::vector<int64_t>{0} : std::vector<int64_t>{};
}

std::vector<TensorId> CheckpointSession::tensors(const TensorQuery& query) {
  std::vector<TensorId> ids;
  const bool wanted =
      query.outputs && query.ranks.contains(0) && query.steps.contains(0) && query.graph.value_or(0) == 0 && query.slot.value_or(0) == 0;
  if (!wanted) return ids;
  const auto add = [&](NodeId node) {
    TensorId id;
    id.node = node;
    ids.push_back(id);
  };
  if (query.nodes == nullptr) {
    for (NodeId node = 0; node < contents_.entries.size(); ++node) add(node);
    return ids;
  }
  for (const NodeRef& ref : *query.nodes) {
    if (ref.graph == graphs_[0].get()) add(ref.node);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

uint32_t CheckpointSession::executions(int rank, int graph, int64_t step, NodeId node) {
  return rank == 0 && graph == 0 && step == 0 && node < contents_.entries.size() ? 1 : 0;
}

Result<const Entry*> CheckpointSession::find(const TensorId& id) const {
  const auto absent = [](std::string text) { return Status(Code::kNotFound, std::move(text)); };
  if (id.rank != 0 || id.graph != 0) return absent("a checkpoint has one graph, 0, of rank 0");
  if (id.step != 0) return absent(fmt::format("a checkpoint has step 0 only, not {}", id.step));
  if (id.node >= contents_.entries.size()) return absent(fmt::format("the checkpoint has no parameter number {}", id.node));
  if (id.slot != Slot{} || id.execution != 0)
    return absent(fmt::format("{} is a parameter and has output:0 only", contents_.entries[id.node].name));
  return &contents_.entries[id.node];
}

Result<OpenTensor> CheckpointSession::open(const TensorId& id) {
  const auto found = find(id);
  if (!found) return found.status();
  const Entry& entry = **found;
  TensorInfo info;
  info.id = id;
  info.dtype = entry.dtype;
  info.shape = entry.shape;
  info.count = entry.count;
  info.bytes = entry.bytes;
  info.source = contents_.file->path();
  info.note = entry.note;
  if (entry.extents.size() > 1) join(info.note, fmt::format("stored in {} pieces", entry.extents.size()));
  if (contents_.facts.crc == CrcState::kDiffers) join(info.note, "the file's CRC does not match: some value in it is damaged");
  info.problem = entry.problem;
  if (!entry.problem.ok()) {
    info.availability = Availability::kUnreadable;
    return OpenTensor(std::move(info), nullptr);
  }
  return OpenTensor(std::move(info), std::make_unique<PiecesReader>(contents_.file, entry));
}

Result<TensorId> CheckpointSession::previous(const TensorId&, bool* history_missing) {
  if (history_missing != nullptr) *history_missing = false;
  return Status(Code::kNotFound, "a checkpoint has one step; the command ckpt diff compares two checkpoints");
}

Result<bool> CheckpointSession::operator_overflow(const TensorId&) {
  return Status(Code::kUnsupported, "a checkpoint holds no record of overflow");
}

SessionReport CheckpointSession::inspect() {
  SessionReport report;
  report.steps_by_graph[0] = {0};
  report.parameter_files = contents_.entries.size();
  report.problems = contents_.facts.problems;
  return report;
}

}  // namespace msdbg::ckpt
