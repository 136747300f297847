#include "session/msprobe/msprobe_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "msdbg/tensor_file.h"
#include "msdbg/unfinished.h"
#include "session/query_filter.h"

namespace msdbg::msprobe {
namespace {

std::string file_below(const std::string& folder, const std::string& name) { return (std::filesystem::path(folder) / name).string(); }

}  // namespace

const RankGraph* MsprobeSession::rank_graph(int rank, int graph) const {
  const auto found = data_.data.find({rank, graph});
  return found == data_.data.end() ? nullptr : &found->second;
}

const StepValues* MsprobeSession::step_values(int rank, int graph, int64_t step) const {
  const RankGraph* data = rank_graph(rank, graph);
  if (data == nullptr) return nullptr;
  const auto found = data->steps.find(step);
  return found == data->steps.end() ? nullptr : &found->second;
}

std::vector<int64_t> MsprobeSession::steps() const {
  std::set<int64_t> all;
  for (const auto& [key, data] : data_.data) {
    for (const auto& [step, values] : data.steps) all.insert(step);
  }
  return {all.begin(), all.end()};
}

std::vector<int64_t> MsprobeSession::steps(int rank, int graph) const {
  std::vector<int64_t> steps;
  if (const RankGraph* data = rank_graph(rank, graph)) {
    for (const auto& [step, values] : data->steps) steps.push_back(step);
  }
  return steps;
}

std::vector<TensorId> MsprobeSession::tensors(const TensorQuery& query) {
  const QueryFilter chosen(query);
  std::vector<TensorId> found;
  for (const int rank : data_.ranks) {
    if (!query.ranks.contains(rank)) continue;
    std::set<int64_t> steps;
    std::vector<const RankGraph*> graphs;
    for (auto at = data_.data.lower_bound({rank, 0}); at != data_.data.end() && at->first.first == rank; ++at) {
      if ((query.graph && *query.graph != at->first.second) || !chosen.contains(*at->second.graph)) continue;
      graphs.push_back(&at->second);
      for (const auto& [step, values] : at->second.steps) {
        if (query.steps.contains(step)) steps.insert(step);
      }
    }
    for (const int64_t step : steps) {
      for (const RankGraph* data : graphs) {
        const auto values = data->steps.find(step);
        if (values == data->steps.end()) continue;
        const Graph& graph = *data->graph;
        for (const Owner& owner : values->second.owners) {
          if (!chosen.contains(graph, owner.node)) continue;
          const auto add = [&](Io io, size_t slots) {
            for (uint32_t slot = 0; slot < slots; ++slot) {
              if (chosen.contains(Slot{io, slot})) found.push_back({rank, graph.id(), step, 0, owner.node, {io, slot}});
            }
          };
          const bool single = owner.is_cut || owner.parameter != UINT32_MAX;
          if (!single) add(Io::kInput, values->second.calls[owner.call].inputs.size());
          add(Io::kOutput, single ? 1 : values->second.calls[owner.call].outputs.size());
        }
      }
    }
  }
  return found;
}

uint32_t MsprobeSession::executions(int rank, int graph, int64_t step, NodeId node) {
  const StepValues* values = step_values(rank, graph, step);
  return values != nullptr && node < values->owner_of.size() && values->owner_of[node] != kNoOwner ? 1 : 0;
}

std::optional<MsprobeSession::Found> MsprobeSession::find(const TensorId& id) const {
  const StepValues* step = step_values(id.rank, id.graph, id.step);
  if (step == nullptr || id.execution != 0 || id.node >= step->owner_of.size() || step->owner_of[id.node] == kNoOwner) return std::nullopt;
  const Owner& owner = step->owners[step->owner_of[id.node]];
  const bool single = owner.is_cut || owner.parameter != UINT32_MAX;
  if (single && id.slot != Slot{}) return std::nullopt;
  if (owner.is_cut) return Found{step, &owner, nullptr};
  const CallRecord& call = step->calls[owner.call];
  if (single) return Found{step, &owner, &call.parameters[owner.parameter]};
  const std::vector<Record>& records = id.slot.io == Io::kInput ? call.inputs : call.outputs;
  if (id.slot.index >= records.size()) return std::nullopt;
  return Found{step, &owner, &records[id.slot.index]};
}

Status MsprobeSession::not_dumped(const TensorId& id) const {
  const auto absent = [](std::string text) { return Status(Code::kNotFound, "not dumped: " + std::move(text)); };
  const RankGraph* data = rank_graph(id.rank, id.graph);
  if (data == nullptr) return absent(fmt::format("there is no graph {} of rank {}", id.graph, id.rank));
  if (id.node >= data->graph->nodes().size()) return absent(fmt::format("graph {} has no such node", id.graph));
  const Node& node = data->graph->node(id.node);
  const StepValues* step = step_values(id.rank, id.graph, id.step);
  if (step == nullptr)
    return absent(fmt::format("rank {} has no data of step {} (have steps {})", id.rank, id.step, numbers_text(steps(id.rank, id.graph))));
  if (step->owner_of[id.node] == kNoOwner) {
    std::vector<int64_t> others;
    for (const auto& [number, values] : data->steps) {
      if (values.owner_of[id.node] != kNoOwner) others.push_back(number);
    }
    const std::string why = step->cut.empty() ? "" : "; " + step->cut;
    return absent(fmt::format("{} was not recorded in step {} (it was in steps {}){}", node.name, id.step, numbers_text(others), why));
  }
  if (id.execution != 0) return absent(fmt::format("{} is one call: execution {} does not exist", node.name, id.execution));
  const Owner& owner = step->owners[step->owner_of[id.node]];
  if (owner.is_cut || owner.parameter != UINT32_MAX) return absent(fmt::format("{} has only output:0", node.name));
  const CallRecord& call = step->calls[owner.call];
  return absent(fmt::format("{}:{} was not recorded in step {} (there are {} inputs and {} outputs)", node.name, slot_name(id.slot),
                            id.step, call.inputs.size(), call.outputs.size()));
}

TensorInfo MsprobeSession::described(const TensorId& id, const Found& found) const {
  TensorInfo info;
  info.id = id;
  info.availability = Availability::kUnreadable;
  if (found.record == nullptr) {
    info.source = file_below(found.step->path, "dump.json");
    info.problem = Status(Code::kCorrupt, "calls of this step are missing: " + found.step->cut);
    return info;
  }
  const Record& record = *found.record;
  info.dtype = record.dtype;
  info.shape = record.shape;
  info.count = record.count;
  info.bytes = record.count * item_size(record.dtype);
  const CallRecord& call = found.step->calls[found.owner->call];
  const std::string_view side = found.owner->parameter != UINT32_MAX ? "parameters." : "";
  info.source = fmt::format("{}:{}.{}{}", file_below(found.step->path, "dump.json"), call.name, side, record.path);
  const std::string reason = no_statistics(record);
  if (reason.empty()) {
    info.availability = Availability::kStatisticsOnly;
    return info;
  }
  const bool wrong = !record.problem.empty();
  info.problem = Status(wrong ? Code::kCorrupt : Code::kNoData, reason);
  if (!wrong && !record.dtype_text.empty() && record.dtype == DType::kUnknown)
    info.problem = Status(Code::kUnsupported, fmt::format("elements of type '{}' are not evaluated", printable(record.dtype_text.get())));
  return info;
}

std::string MsprobeSession::refused(const std::string& file) {
  const bool below = file.find('/') == std::string::npos && file.find('\0') == std::string::npos;
  const bool plain = below && !file.empty() && file != "." && file != "..";
  return plain ? "" : fmt::format("the table names a file outside of its folder, which is not opened: {}", printable(file));
}

std::unique_ptr<ElementReader> MsprobeSession::open_elements_of(TensorInfo& info, const Found& found) const {
  const Record& record = *found.record;
  if (record.file.empty() || !record.problem.empty()) return nullptr;
  if (std::string reason = refused(record.file); !reason.empty()) {
    info.note = std::move(reason);
    return nullptr;
  }
  const bool torch = record.file.ends_with(".pt");
  if (!torch && !record.file.ends_with(".npy")) {
    info.note = fmt::format("{}: neither a .pt nor a .npy file", printable(record.file));
    return nullptr;
  }
  const std::string path = file_below(file_below(found.step->path, "dump_tensor_data"), record.file);
  auto [content, reader] = open_tensor_file(path, {torch ? FileForm::kTorch : FileForm::kNpy});
  if (reader == nullptr || content.count != record.count) {
    // The statistics of the table are still there.
    info.note = reader == nullptr ? fmt::format("{}: {}", printable(record.file), content.problem.message())
                                  : fmt::format("{} holds {} elements, the table says {}", record.file, content.count, record.count);
    if (info.availability != Availability::kUnreadable) return nullptr;
    info.problem = reader == nullptr ? Status(content.problem.code(), info.note) : Status(Code::kCorrupt, info.note);
    return nullptr;
  }
  if (content.dtype != record.dtype && record.dtype != DType::kUnknown)
    info.note = fmt::format("{} in the program, {} in the file", dtype_name(record.dtype), dtype_name(content.dtype));
  if (!content.note.empty()) info.note += (info.note.empty() ? "" : "; ") + content.note;
  info.availability = Availability::kElements;
  info.problem = {};
  info.dtype = content.dtype;
  info.bytes = content.bytes;
  info.source = path;
  return std::move(reader);
}

Result<OpenTensor> MsprobeSession::open(const TensorId& id) {
  const std::optional<Found> found = find(id);
  if (!found) return not_dumped(id);
  TensorInfo info = described(id, *found);
  std::unique_ptr<ElementReader> reader = found->record == nullptr ? nullptr : open_elements_of(info, *found);
  return OpenTensor(std::move(info), std::move(reader));
}

Result<TensorInfo> MsprobeSession::describe(const TensorId& id) {
  const std::optional<Found> found = find(id);
  if (!found) return not_dumped(id);
  if (found->record == nullptr || found->record->file.empty()) return described(id, *found);
  return Session::describe(id);
}

TensorInfo MsprobeSession::identify(const TensorId& id) {
  TensorInfo info;
  info.id = id;
  const std::optional<Found> found = find(id);
  if (!found) return info;
  info.source = described(id, *found).source;
  if (found->record != nullptr && refused(found->record->file).empty())
    info.source = file_below(file_below(found->step->path, "dump_tensor_data"), found->record->file);
  return info;
}

std::optional<Stats> MsprobeSession::given_statistics(const TensorId& id) {
  const std::optional<Found> found = find(id);
  if (!found || found->record == nullptr || !no_statistics(*found->record).empty()) return std::nullopt;
  return statistics_of(*found->record, data_.rounded);
}

std::string MsprobeSession::checksum(const TensorId& id) {
  const std::optional<Found> found = find(id);
  if (!found || found->record == nullptr || found->record->checksum_bits == 0) return {};
  const Record& record = *found->record;
  return record.checksum_bits == 32 ? fmt::format("crc32 {:08x}", record.checksum) : fmt::format("xor {:016x}", record.checksum);
}

std::vector<Attribute> MsprobeSession::arguments(const TensorId& id) {
  const StepValues* step = step_values(id.rank, id.graph, id.step);
  if (step == nullptr || id.node >= step->owner_of.size() || step->owner_of[id.node] == kNoOwner) return {};
  const Owner& owner = step->owners[step->owner_of[id.node]];
  if (owner.call == kNoCall || owner.parameter != UINT32_MAX) return {};
  const CallRecord& call = step->calls[owner.call];
  std::vector<Attribute> all = call.attributes;
  for (uint32_t slot = 0; slot < call.inputs.size(); ++slot)
    all.push_back({SharedText(call.inputs[slot].path), SharedText(slot_name({Io::kInput, slot}))});
  return all;
}

std::vector<Overwritten> MsprobeSession::overwritten(int rank, int64_t step) {
  std::vector<Overwritten> found;
  for (auto at = data_.data.lower_bound({rank, 0}); at != data_.data.end() && at->first.first == rank; ++at) {
    const auto values = at->second.steps.find(step);
    if (values != at->second.steps.end()) found.insert(found.end(), values->second.overwritten.begin(), values->second.overwritten.end());
  }
  return found;
}

Result<TensorId> MsprobeSession::previous(const TensorId& id, bool* history_missing) {
  if (history_missing != nullptr) *history_missing = false;
  const RankGraph* data = rank_graph(id.rank, id.graph);
  if (data == nullptr) return not_dumped(id);
  for (auto at = data->steps.lower_bound(id.step); at != data->steps.begin();) {
    --at;
    TensorId before = id;
    before.step = at->first;
    if (find(before)) return before;
  }
  return Status(Code::kNotFound, fmt::format("no earlier step of the dump has it before step {}", id.step));
}

Result<bool> MsprobeSession::operator_overflow(const TensorId& id) {
  const std::optional<Found> found = find(id);
  if (!found) return not_dumped(id);
  if (found->record != nullptr && found->owner->parameter == UINT32_MAX) {
    if (const std::optional<bool>& flagged = found->step->calls[found->owner->call].flagged) return *flagged;
  }
  return Status(Code::kUnsupported, "msprobe did not record the overflow register (task nan_check records it)");
}

SessionReport MsprobeSession::inspect() {
  SessionReport report;
  report.problems = data_.problems;
  for (const auto& [key, data] : data_.data) {
    std::vector<int64_t>& steps = report.steps_by_graph[key.second];
    for (const auto& [step, values] : data.steps) {
      steps.push_back(step);
      for (const CallRecord& call : values.calls) {
        if (interrupt_requested()) return report;
        const auto count = [&](const std::vector<Record>& records, uint64_t& files) {
          for (const Record& record : records) {
            record.file.empty() ? ++report.statistic_rows : ++files;
            if (record.file.empty()) continue;
            const std::string path = file_below(file_below(values.path, "dump_tensor_data"), record.file);
            std::error_code error;
            if (std::string reason = refused(record.file); !reason.empty())
              report.problems.push_back({Severity::kWarning, file_below(values.path, "dump.json"), std::move(reason)});
            else if (!std::filesystem::exists(path, error))
              report.problems.push_back({Severity::kWarning, path, "the table names this file, and it is not there"});
          }
        };
        count(call.inputs, report.tensor_files);
        count(call.outputs, report.tensor_files);
        count(call.parameters, report.parameter_files);
      }
    }
  }
  add_rank_problems(*this, report.problems);
  for (auto& [graph, steps] : report.steps_by_graph) {
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  }
  return report;
}

}  // namespace msdbg::msprobe
