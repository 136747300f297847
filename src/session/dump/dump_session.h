// The session on a dump directory. Opening reads everything except the content of tensor files.
//
// Immutable after open_dump(), except for the overflow records, which only the owner's thread reads, and the index.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msdbg/session.h"
#include "msdbg/shared.h"
#include "msdbg/tensor_file.h"
#include "session/dump/history.h"
#include "session/dump/metadata.h"
#include "session/dump/stats_index.h"
#include "session/dump/step_files.h"
#include "session/dump/step_index.h"

namespace msdbg::dump {

/// A listed directory, reduced to what is still needed.
struct KnownDirectory {
  std::string path;
  std::vector<StatisticRow> rows;
  std::vector<std::string> others, unmapped;
};

struct GraphData {
  GraphPtr graph;
  std::map<int64_t, StepIndex> steps;  ///< only steps with values
  StepIndex constants;
};

/// What the overflow detector recorded in one step of one rank.
struct OverflowRecords {
  std::vector<std::string> readable;                                ///< paths of .json files
  std::vector<std::string> containers;                              ///< paths of device files
  std::optional<std::vector<OverflowEntry>> flagged;                ///< filled on first use
  std::string problem;
};

/// The files of chosen tensors, for the converter.
struct DumpPlaces {
  struct Chosen {
    std::string file;   ///< below the directory
    bool in_container = false;
    Slot slot;
    std::string format;
  };
  std::string root;
  std::vector<std::string> homes;  ///< directories that may contain graphs and metadata
  bool plain = false;              ///< a directory of files with any name
  std::map<std::string, std::vector<Chosen>> chosen;  ///< by directory
};

/// Everything that opening collects.
struct DumpData {
  SessionInfo info;
  std::string root;                ///< of the layout
  std::vector<std::string> homes;  ///< the root and the ranks' directories
  std::vector<int> ranks;
  std::vector<GraphPtr> graphs;                                 ///< by rank, then id
  std::map<std::pair<int, int>, GraphData> data;                ///< (rank, graph)
  std::map<int, History> history;                               ///< rank
  std::map<std::pair<int, int64_t>, OverflowRecords> overflow;  ///< (rank, step)
  std::vector<KnownDirectory> directories;
  std::vector<TextArena> names;  ///< of files; each thread that lists has its own
  std::vector<std::string> formats;
  std::vector<Problem> problems;
};

class DumpSession : public Session, public SharedFiles, private FilePlaces {
 public:
  explicit DumpSession(DumpData data) : data_(std::move(data)) {}
  ~DumpSession() override;
  /// From now on, statistics come from the index and go there. `complete`: all of the dump is open.
  void use_index(std::shared_ptr<StatsIndex> index, bool plain, bool complete);

  const SessionInfo& info() const override { return data_.info; }
  std::span<const int> ranks() const override { return data_.ranks; }
  std::span<const GraphPtr> graphs() const override { return data_.graphs; }
  std::vector<int64_t> steps() const override;
  std::vector<int64_t> steps(int rank, int graph) const override;
  std::vector<TensorId> tensors(const TensorQuery& query) override;
  uint32_t executions(int rank, int graph, int64_t step, NodeId node) override;
  Result<OpenTensor> open(const TensorId& id) override;
  bool exists(const TensorId& id) override { return find(id) != nullptr; }
  TensorInfo identify(const TensorId& id) override;
  std::string location(const TensorId& id) override;
  std::optional<Stats> given_statistics(const TensorId& id) override;
  Result<TensorId> previous(const TensorId& id, bool* history_missing) override;
  std::optional<uint64_t> written_at(const TensorId& id) override;
  bool may_have_changed(const TensorId& parameter) const override;
  Result<bool> operator_overflow(const TensorId& id) override;
  Result<std::vector<OverflowRecord>> overflow_records(int rank, int64_t step) override;
  SessionReport inspect() override;
  void check_ends() override;
  void before_exit() override;
  DumpPlaces places(const TensorQuery& query);

 private:
  std::optional<FilePlace> locate(const TensorId& id) const override;
  Result<TensorId> earlier(const TensorId& id, bool* history_missing) const override;
  void for_each_file(const std::function<void(const FilePlace& place)>& take) const override;

  const GraphData* graph_data(int rank, int graph) const;
  const StepIndex* step_index(int rank, int graph, int64_t step) const;
  /// The value of a tensor; constants that were written once apply to every step.
  const Value* find(const TensorId& id) const;
  std::optional<uint64_t> time_of(const TensorId& id) const;
  Status not_dumped(const TensorId& id) const;
  std::string path_of(const Value& value) const;
  static FileHints hints_of(const Value& value);
  Status format_problem(const Value& value) const;
  /// What the graph says about an output; null for other values.
  const OutputType* type_of(const TensorId& id) const;
  void describe_row(TensorInfo& info, const Value& value) const;

  DumpData data_;
  std::shared_ptr<StatsIndex> index_;  // null without one
};

std::string_view note_text(Note note);
/// Why files of this kind and format are not read.
Status content_problem(FileKind kind, std::string_view format);

/// Opens the file `info.source`; null if the elements are not available, and `info` has the reason. `type`: may be null.
std::unique_ptr<ElementReader> open_value(TensorInfo& info, FileKind kind, const FileHints& hints, const OutputType* type);

}  // namespace msdbg::dump
