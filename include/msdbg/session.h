// A debugging session: graphs, steps and tensors of a dump, a checkpoint or a training process.
//
// The thread that created the session owns it. `open`, `describe` and `previous` may also be called from the
// check's worker threads; everything else is for the owner only.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/graph.h"
#include "msdbg/simd.h"
#include "msdbg/tensor.h"
#include "msdbg/watch.h"

namespace msdbg {

/// Names one value: what a run wrote (or would write) for one slot of one execution of one node.
struct TensorId {
  int rank = 0;
  int graph = 0;          ///< Graph::id()
  int64_t step = 0;       ///< the run's own number, never shifted
  uint32_t execution = 0; ///< 0, 1, ... for a node that ran several times in the step
  NodeId node = kNoNode;
  Slot slot;
  auto operator<=>(const TensorId&) const = default;
};

/// How much of a tensor there is.
enum class Availability : uint8_t {
  kElements,
  kStatisticsOnly,  ///< a row of statistic.csv, no elements
  kUnreadable,      ///< listed, but `problem` says why it cannot be evaluated
};

struct TensorInfo {
  TensorId id;
  Availability availability = Availability::kElements;
  DType dtype = DType::kUnknown;
  Shape shape;
  uint64_t count = 0;
  uint64_t bytes = 0;   ///< of the elements
  std::string source;   ///< path of the file, or where it came from
  std::string format;   ///< "DefaultFormat", "NCHW", ...
  std::string note;     ///< uncertain pairing, shape taken from the graph, ...; for people
  Status problem;       ///< why it cannot be evaluated; ok when it can

  /// Ok when the elements can be read; otherwise why not: `problem`, or kNoData for statistics only.
  Status elements() const;
};

/// Access to the elements of one tensor, native byte order, row-major. Read them in order; another pass may start again.
class ElementReader {
 public:
  /// Precondition: is_evaluable(dtype).
  ElementReader(DType dtype, uint64_t count);
  virtual ~ElementReader() = default;
  ElementReader(const ElementReader&) = delete;
  ElementReader& operator=(const ElementReader&) = delete;

  DType dtype() const { return dtype_; }
  uint64_t count() const { return count_; }
  /// Fills `out` with elements from `first` on. Precondition: whole elements, not beyond count().
  /// Error: kIoError when the file shrank or vanished, kInterrupted.
  Status read(uint64_t first, std::span<std::byte> out);
  /// The tensor itself if it is in memory, else null.
  virtual TensorPtr in_memory() const { return nullptr; }

 private:
  virtual Status fill(uint64_t first, std::span<std::byte> out) = 0;

  DType dtype_;
  uint64_t count_;
};

/// An opened tensor. Its elements are only available together with the description that fits them.
struct OpenTensor {
  /// Precondition: `reader` is null exactly when info.elements() is not ok; otherwise both name one type and one count, which
  /// is that of the shape.
  OpenTensor(TensorInfo info, std::unique_ptr<ElementReader> reader);
  /// A tensor in memory. Type, shape and size of `info` are set from it; a type without numbers becomes the problem.
  static OpenTensor in_memory(TensorInfo info, TensorPtr tensor);

  TensorInfo info;
  std::unique_ptr<ElementReader> reader;
};

/// Where the values of a session come from.
enum class SessionKind : uint8_t { kDump, kCheckpoint, kLive, kRecording };
/// "dump", "checkpoint", "live", "recording": the word in Lua and JSON.
std::string_view session_kind_name(SessionKind kind);
std::optional<SessionKind> session_kind_from_name(std::string_view name);
/// True where parameters can be seen before the first step: in a training and in its recording.
bool shows_initial_values(SessionKind kind);

struct SessionInfo {
  SessionKind kind = SessionKind::kDump;
  std::string source;             ///< path or peer, as the user gave it
  std::string short_name;         ///< for the prompt
  std::string layout, epoch;      ///< dump: "R", "V-sync", ...; "B".."E"
  std::string framework_version;  ///< "" when unknown
  std::string device_target;
  std::vector<std::string> nets;
};

/// Which tensors a call is about. Empty vectors mean all.
struct TensorQuery {
  IntSet ranks = IntSet::all();
  IntSet steps = IntSet::all();
  std::optional<int> graph;
  const std::vector<NodeRef>* nodes = nullptr;  ///< null: every node
  bool inputs = false;
  bool outputs = true;
  std::optional<uint32_t> slot;                 ///< only this slot index
};

struct Problem {
  Severity severity = Severity::kWarning;
  std::string path;
  std::string message;
};

/// What `doctor` reports.
struct SessionReport {
  std::map<int, std::vector<int64_t>> steps_by_graph;      ///< graph id -> steps with data, all ranks joined
  uint64_t tensor_files = 0, parameter_files = 0, constant_files = 0, statistic_rows = 0, device_files = 0, other_files = 0;
  std::vector<Problem> problems;
};

class Session {
 public:
  virtual ~Session();

  virtual const SessionInfo& info() const = 0;
  virtual bool can_step() const { return false; }  ///< a dump cannot; all its steps are there at once

  virtual std::span<const int> ranks() const = 0;
  virtual std::span<const GraphPtr> graphs() const = 0;  ///< by rank, then id
  const Graph* graph(int rank, int id) const;
  /// Steps with data, ascending; of all graphs and ranks, or of one graph.
  virtual std::vector<int64_t> steps() const = 0;
  virtual std::vector<int64_t> steps(int rank, int graph) const = 0;

  /// What exists, in order of rank, step, graph, execution order (a loop body: execution by execution), io, slot.
  /// Constants appear once, with step = the first requested step of their graph.
  virtual std::vector<TensorId> tensors(const TensorQuery& query) = 0;
  /// Executions of a node in a step (0 when it did not run or was not dumped).
  virtual uint32_t executions(int rank, int graph, int64_t step, NodeId node) = 0;
  /// Opens the source of a tensor once: its description, and its elements if available. A training sends the value, and
  /// the received value is described.
  /// Error: kNotFound "not dumped: ..." saying what exists instead; why a training did not send it.
  virtual Result<OpenTensor> open(const TensorId& id) = 0;
  /// The description alone, for lists and questions about types. Another value may be there when it is opened later: what is
  /// computed from elements goes by the description that open() gives with them.
  virtual Result<TensorInfo> describe(const TensorId& id);
  /// Statistics that came with the data (statistic.csv); nullopt when there are none.
  virtual std::optional<Stats> given_statistics(const TensorId& id) = 0;
  /// The same value in the last earlier step in which its graph ran and it was dumped; `kNotFound` otherwise.
  /// `history_missing` is set when nothing is known about the runs of the graph (error bit 16 besides 4).
  virtual Result<TensorId> previous(const TensorId& id, bool* history_missing) = 0;
  /// The hardware overflow flag of an execution; kUnsupported where the run did not record it.
  virtual Result<bool> operator_overflow(const TensorId& id) = 0;

  virtual SessionReport inspect() = 0;

  /// A check on several threads begins. It opens `reads`, roughly in this order, and a session may fetch several of them at once.
  /// Until check_ends() the session does not change, whatever functions the check calls; events wait until then.
  virtual void check_begins(std::vector<TensorId> /*reads*/) {}
  virtual void check_ends() {}

  // Implemented once, on top of the above:

  /// open(), but an error if there are no elements.
  Result<OpenTensor> open_elements(const TensorId& id);
  /// All elements in memory. Error: kOutOfMemory when larger than `mem_limit_bytes`.
  Result<TensorPtr> load(const TensorId& id, uint64_t mem_limit_bytes = UINT64_MAX);
  /// Statistics of one tensor, kept and reused by check().
  ///
  /// Kept are those of up to `kept_stats` tensors, for as long as the session lives. When there are more, those stay that the
  /// last check or the one before it used, so a check repeated over too many tensors still finds `kept_stats` of them.
  Result<Stats> stats(const TensorId& id);
  Result<Stats> stats(const TensorId& id, const TensorId& previous, const StatsRequest& request);
  /// `NODE:output:0`, with `@step` etc. left out; for messages and JSON use the fields.
  std::string tensor_name(const TensorId& id) const;
  const Node& node(const TensorId& id) const;

  /// About 100 MB of statistics at the usual length of a path.
  static constexpr size_t kKeptStats = size_t{1} << 17;

  explicit Session(size_t kept_stats = kKeptStats);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 protected:
  // For sessions whose values change: what has been computed stays true only as long as the value does.
  /// Drops the kept statistics of the tensors for which `gone` is true.
  void forget_stats(const std::function<bool(const TensorId&)>& gone);
  /// Tensors with kept statistics.
  std::vector<TensorId> tensors_with_stats() const;
  /// The description of such a tensor when its statistics were computed.
  std::optional<TensorInfo> info_of_kept(const TensorId& id) const;

 private:
  friend class CheckRun;
  struct StatsCache;
  std::unique_ptr<StatsCache> stats_cache_;
};

/// Names a tensor from text: `NODE`, `NODE:0`, `NODE:output:0`, `NODE:input:1`; NODE as find_node() takes it.
Result<TensorId> resolve_tensor(const Session& session, std::string_view text, int64_t step, std::optional<int> rank = {},
                                std::optional<int> graph = {}, uint32_t execution = 0);

}  // namespace msdbg
