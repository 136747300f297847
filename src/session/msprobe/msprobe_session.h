// The session on a dump of msprobe. Opening reads every table, and no tensor.
//
// Immutable after open_msprobe().
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "msdbg/session.h"
#include "session/msprobe/model.h"

namespace msdbg::msprobe {

/// Everything that opening collects.
struct DumpData {
  SessionInfo info;
  std::vector<int> ranks;
  std::vector<GraphPtr> graphs;                       ///< by rank, then id
  std::map<std::pair<int, int>, RankGraph> data;      ///< (rank, graph)
  std::vector<Problem> problems;
  bool rounded = false;  ///< integers and 64-bit floats went through float32
  bool late_checksums = false;  ///< see StepTable
};

class MsprobeSession final : public Session {
 public:
  explicit MsprobeSession(DumpData data) : data_(std::move(data)) {}

  const SessionInfo& info() const override { return data_.info; }
  std::span<const int> ranks() const override { return data_.ranks; }
  std::span<const GraphPtr> graphs() const override { return data_.graphs; }
  std::vector<int64_t> steps() const override;
  std::vector<int64_t> steps(int rank, int graph) const override;
  std::vector<TensorId> tensors(const TensorQuery& query) override;
  uint32_t executions(int rank, int graph, int64_t step, NodeId node) override;
  Result<OpenTensor> open(const TensorId& id) override;
  Result<TensorInfo> describe(const TensorId& id) override;
  TensorInfo identify(const TensorId& id) override;
  std::optional<Stats> given_statistics(const TensorId& id) override;
  std::string checksum(const TensorId& id) override;
  bool late_checksums() const override { return data_.late_checksums; }
  std::vector<Attribute> arguments(const TensorId& id) override;
  std::vector<Overwritten> overwritten(int rank, int64_t step) override;
  Result<TensorId> previous(const TensorId& id, bool* history_missing) override;
  Result<bool> operator_overflow(const TensorId& id) override;
  SessionReport inspect() override;

 private:
  struct Found {
    const StepValues* step = nullptr;
    const Owner* owner = nullptr;
    const Record* record = nullptr;  ///< null for calls that were lost
  };

  const RankGraph* rank_graph(int rank, int graph) const;
  const StepValues* step_values(int rank, int graph, int64_t step) const;
  std::optional<Found> find(const TensorId& id) const;
  Status not_dumped(const TensorId& id) const;
  /// Everything but what the file of the elements says.
  TensorInfo described(const TensorId& id, const Found& found) const;
  /// Why the name of a file is not followed; "" if it is.
  static std::string refused(const std::string& file);
  std::unique_ptr<ElementReader> open_elements_of(TensorInfo& info, const Found& found) const;

  DumpData data_;
};

}  // namespace msdbg::msprobe
