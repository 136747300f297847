// Plans the next dump: the configuration of MindSpore's dump or of msprobe for chosen nodes and steps, and its cost on disk.
//
// Any thread; reads only the graphs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/graph.h"
#include "msdbg/session.h"

namespace msdbg {

/// What is saved of a tensor.
enum class SavedData : uint8_t {
  kTensor,
  kStatistic,  ///< one row of statistic.csv; no release supports it on the CPU backend
  kFull,       ///< both
};
/// Which slots of a kernel.
enum class DumpedSlots : uint8_t { kBoth, kInputs, kOutputs };

struct DumpPlanOptions {
  IntSet steps = IntSet::all();
  SavedData saved = SavedData::kTensor;
  DumpedSlots slots = DumpedSlots::kBoth;
  std::string path = "/tmp/msdbg_dump";  ///< of the planned dump: absolute, only letters, digits, `_`, `-` and `/`
  std::string net_name = "Net";          ///< letters, digits, `_` and `-`
  std::string version;                   ///< the MindSpore version that will run, "2.7.1"; "": the newest known one
  std::string device_target;             ///< "CPU", "GPU", "Ascend"; "": unknown
};

/// The facts that a run recorded: its version, device and net name. `coarse`: everything is wanted, and statistics suffice if the
/// device supports them.
DumpPlanOptions plan_options_of(const SessionInfo& info, bool coarse);

/// Who reads the configuration.
enum class PlanTool : uint8_t {
  kMindSpore,  ///< MINDSPORE_DUMP_CONFIG
  kMsprobe,    ///< PrecisionDebugger(config_path=...); for graphs of recorded calls
};

struct DumpPlan {
  PlanTool tool = PlanTool::kMindSpore;
  std::string json;                 ///< the configuration file, ending in a newline
  std::vector<std::string> notes;   ///< information for the user
  size_t nodes = 0;                 ///< chosen nodes that a run can write
  size_t left_out = 0;              ///< chosen nodes that are never written: structural nodes, inline constants
  bool everything = false;          ///< no list of kernels is needed
  uint64_t bytes_per_step = 0;      ///< of the tensors whose shape is in the graph; see size_known()
  uint64_t files_per_step = 0;
  size_t unknown_sizes = 0;         ///< slots whose shape or type is not in the graph; not counted in the bytes
  std::optional<uint64_t> steps;    ///< nullopt: all steps, without a total

  /// False if no slot has a size (no readable graph file): then the bytes are meaningless.
  bool size_known() const { return bytes_per_step > 0 || unknown_sizes == 0; }
};

/// Graphs of recorded calls (msprobe) are planned for msprobe: the calls by name, the modules of chosen parameters.
/// Error: kInvalidArgument for a path or name that MindSpore refuses, steps without an end, or statistics that the backend or
/// release does not support; kNotFound if none of the nodes is ever written.
/// Source: docs/dump-plan.md; the keys are those of MindSpore's dump configuration.
Result<DumpPlan> plan_dump(std::span<const GraphPtr> graphs, std::span<const NodeRef> nodes, const DumpPlanOptions& options);

/// The plan and its cost as JSON: nodes, left_out, bytes_per_step (null when unknown), files_per_step, unknown_sizes, steps, notes,
/// configuration.
std::string plan_json(const DumpPlan& plan);

/// The nodes within `hops` edges of `centre`, including itself, looking through structural nodes; execution order.
std::vector<NodeRef> nodes_around(const Graph& graph, NodeId centre, int hops);

}  // namespace msdbg
