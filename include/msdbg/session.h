// A debugging session: graphs, steps and tensors of a dump, a checkpoint or a training process.
//
// The thread that created the session owns it. Worker threads of a check may also call `open`, `describe` and `previous`;
// everything else is for the owner only.
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
#include "msdbg/file.h"
#include "msdbg/graph.h"
#include "msdbg/simd.h"
#include "msdbg/tensor.h"
#include "msdbg/watch.h"

namespace msdbg {

/// Identifies one value: what a run wrote (or would write) for one slot of one execution of one node.
struct TensorId {
  int rank = 0;
  int graph = 0;          ///< Graph::id()
  int64_t step = 0;       ///< the run's own number, never offset
  uint32_t execution = 0; ///< 0, 1, ... for a node that ran several times in the step
  NodeId node = kNoNode;
  Slot slot;
  auto operator<=>(const TensorId&) const = default;
};

/// What is available of a tensor.
enum class Availability : uint8_t {
  kElements,
  kStatisticsOnly,  ///< a row of statistic.csv, no elements
  kUnreadable,      ///< listed, but cannot be evaluated; see `problem`
};

struct TensorInfo {
  TensorId id;
  Availability availability = Availability::kElements;
  DType dtype = DType::kUnknown;
  Shape shape;
  uint64_t count = 0;
  uint64_t bytes = 0;   ///< of the elements
  std::string source;   ///< path of the file, or another source
  std::string format;   ///< "DefaultFormat", "NCHW", ...
  std::string note;     ///< uncertain match, shape taken from the graph, ...; for display
  Status problem;       ///< why it cannot be evaluated; ok if it can

  /// Ok if the elements can be read; otherwise the reason: `problem`, or kNoData for statistics only.
  Status elements() const;
};

/// A tensor and its statistics.
struct StatsRow {
  TensorInfo info;
  std::optional<Stats> stats;  ///< nullopt: see info.problem
};

/// Access to the elements of one tensor, in native byte order, row-major. Read them in order; another pass may start again.
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
  /// Error: kIoError if the file shrank or vanished, kInterrupted.
  Status read(uint64_t first, std::span<std::byte> out);
  /// The tensor itself if it is in memory, else null.
  virtual TensorPtr in_memory() const { return nullptr; }
  /// The state of its file at opening; null without a file.
  virtual const FileStamp* file() const { return nullptr; }

 private:
  virtual Status fill(uint64_t first, std::span<std::byte> out) = 0;

  DType dtype_;
  uint64_t count_;
};

/// An opened tensor. Its elements are available only together with the matching description.
struct OpenTensor {
  /// Precondition: `reader` is null if and only if info.elements() is not ok; otherwise both have the same type and count, and the
  /// count is that of the shape.
  OpenTensor(TensorInfo info, std::unique_ptr<ElementReader> reader);
  /// A tensor in memory. Sets type, shape and size of `info` from it; a non-numeric type becomes the problem.
  static OpenTensor in_memory(TensorInfo info, TensorPtr tensor);

  TensorInfo info;
  std::unique_ptr<ElementReader> reader;
};

/// The source of a session's values.
enum class SessionKind : uint8_t { kDump, kCheckpoint, kLive, kRecording };
/// "dump", "checkpoint", "live", "recording": the word in Lua and JSON.
std::string_view session_kind_name(SessionKind kind);
std::optional<SessionKind> session_kind_from_name(std::string_view name);
/// True if parameters are available before the first step: in a training and in its recording.
bool shows_initial_values(SessionKind kind);

struct SessionInfo {
  SessionKind kind = SessionKind::kDump;
  std::string source;             ///< path or peer, as given by the user
  std::string short_name;         ///< for the prompt
  std::string layout, epoch;      ///< dump: "R", "V-sync", ...; "B".."E"
  std::string framework;          ///< of a program whose calls were recorded: "pytorch", "mindspore"; "" for others
  std::string framework_version;  ///< "" if unknown
  std::string device_target;
  std::vector<std::string> nets;
  bool all_operators = false;     ///< dump: its configuration says that every operator was to be dumped
};

/// The tensors of a call. Empty vectors mean all.
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

/// The report of `doctor`.
struct SessionReport {
  std::map<int, std::vector<int64_t>> steps_by_graph;      ///< graph id -> steps with data, all ranks merged
  uint64_t tensor_files = 0, parameter_files = 0, constant_files = 0, statistic_rows = 0, device_files = 0, other_files = 0;
  std::vector<Problem> problems;
};

/// Statistics that outlive a session: the index of a dump. An entry is bytes that only sessions read (src/session/kept_stats_bytes.h).
/// Any thread.
class StatsStore {
 public:
  /// Identifies the state of a tensor that find() was asked about. Only the store reads it.
  struct Ticket {
    uint64_t digest = 0, previous = 0;
    int64_t youngest = 0, when = 0;
    uint64_t name = 0;
    uint32_t directory = 0;
  };
  virtual ~StatsStore() = default;
  /// Sets `entry` to that of a tensor; "" without one. `previous`: if it does not suffice, the tensor is read together with its previous
  /// value. `kept_before`: false if this session never called put() for the tensor. nullopt: nothing can be kept of it.
  virtual std::optional<Ticket> find(const TensorId& id, bool previous, bool kept_before, std::string& entry) = 0;
  /// Completes the ticket of a tensor that another process will open.
  virtual void look(const TensorId& /*id*/, Ticket& /*ticket*/) {}
  /// The tensor was read after find() gave `ticket`. `file`: the file then; null if it is not known.
  virtual void put(const TensorId& id, const Ticket& ticket, const FileStamp* file, std::string_view entry) = 0;
  /// Nobody will ask for a while: what can be read again need not be kept in memory. The owner's thread.
  virtual void rest() {}
};

/// A kernel that overflowed, as the hardware's detector recorded it.
struct OverflowRecord {
  int rank = 0;
  int64_t step = 0;
  std::optional<TensorId> tensor = {};  ///< of the operator: its first dumped output, else input; nullopt: no file has its numbers
  int64_t task = 0, stream = 0;
  std::string unit;                     ///< "AI Core", "L2 Atomic Add", "DHA Atomic Add"
};

/// Two recorded values of the same memory that differ, although no call ran between them.
struct Overwritten {
  TensorId before, after;
  std::string reason;  ///< why they have to be equal: "both are the input of one Linear"
};

class StatsCache;

class Session {
 public:
  virtual ~Session();

  virtual const SessionInfo& info() const = 0;
  virtual bool can_step() const { return false; }  ///< false for a dump: all its steps exist at once
  /// Of a session that can step: the step at which it is held, the only one whose values can be read; nullopt while it runs.
  virtual std::optional<int64_t> held_step() { return std::nullopt; }

  virtual std::span<const int> ranks() const = 0;
  virtual std::span<const GraphPtr> graphs() const = 0;  ///< by rank, then id
  const Graph* graph(int rank, int id) const;
  /// Steps with data, ascending; for all graphs and ranks, or for one graph.
  virtual std::vector<int64_t> steps() const = 0;
  virtual std::vector<int64_t> steps(int rank, int graph) const = 0;

  /// The existing tensors, ordered by rank, step, graph, execution order (a loop body: execution by execution), io, slot. Constants
  /// appear once, with step = the first requested step of their graph.
  virtual std::vector<TensorId> tensors(const TensorQuery& query) = 0;
  /// The number of executions of a node in a step (0 if it did not run or was not dumped).
  virtual uint32_t executions(int rank, int graph, int64_t step, NodeId node) = 0;
  /// Opens the source of a tensor once: its description, and its elements if available. For a training, the description is that of
  /// the value it sends.
  /// Error: kNotFound "not dumped: ..." with what exists instead; the reason why a training did not send it.
  virtual Result<OpenTensor> open(const TensorId& id) = 0;
  /// Only the description, for lists and type information. The value may have changed when it is opened later: results computed
  /// from elements use the description from open().
  virtual Result<TensorInfo> describe(const TensorId& id);
  /// Whether describe() gives an answer. Of a dump, without looking at the file.
  virtual bool exists(const TensorId& id) { return describe(id).ok(); }
  /// What is known of a tensor without opening it: id, source, format. Any thread.
  virtual TensorInfo identify(const TensorId& id);
  /// Statistics that came with the data (statistic.csv); nullopt without any. Any thread, unless the session can step.
  virtual std::optional<Stats> given_statistics(const TensorId& id) = 0;
  /// A checksum of the elements that came with the data, with its method: "crc32 0badcafe"; "" without one. Any thread.
  virtual std::string checksum(const TensorId& /*id*/) { return {}; }
  /// True if some belong to later values: unequal checksums then prove nothing.
  virtual bool late_checksums() const { return false; }
  /// The arguments of a recorded call in a step: scalars by their value, tensors as `input:2`. Its node has the scalars of the first step.
  virtual std::vector<Attribute> arguments(const TensorId& /*id*/) { return {}; }
  /// What was overwritten in a step, in the order of the calls that took it. Only where two records show it.
  virtual std::vector<Overwritten> overwritten(int /*rank*/, int64_t /*step*/) { return {}; }
  /// The same value in the last earlier step in which its graph ran and it was dumped; `kNotFound` otherwise. Sets
  /// `history_missing` if nothing is known about the runs of the graph (error bit 16 besides 4).
  virtual Result<TensorId> previous(const TensorId& id, bool* history_missing) = 0;
  /// When the value was written, in microseconds on the clock of its rank; nullopt when that was not recorded. It orders graphs that
  /// take turns within a step.
  virtual std::optional<uint64_t> written_at(const TensorId& /*id*/) { return std::nullopt; }
  /// Whether the value that a parameter has now may be another than the one that the step read, although no operator of the graph
  /// writes it: live, when a step has run of which the graph does not show the optimizer.
  virtual bool may_have_changed(const TensorId& /*parameter*/) const { return false; }
  /// True for an operator that a training, held within a step, has not reached in that step.
  virtual bool yet_to_run(const TensorId& /*id*/) const { return false; }
  /// True for the step at whose beginning a training is held: parameters have the values that it will read.
  virtual bool at_step_begin(int /*rank*/, int64_t /*step*/) const { return false; }
  /// The hardware overflow flag of an execution; kUnsupported if the run did not record it.
  virtual Result<bool> operator_overflow(const TensorId& id) = 0;

  /// The kernels of a step that overflowed, in the order of execution; those without a dumped value come last. Owner's thread.
  /// Error: a record that cannot be read.
  virtual Result<std::vector<OverflowRecord>> overflow_records(int /*rank*/, int64_t /*step*/) { return std::vector<OverflowRecord>(); }

  virtual SessionReport inspect() = 0;

  /// A check on several threads begins. It opens `reads`, roughly in this order, and a session may fetch several of them at once.
  /// Until check_ends() the session does not change, whatever functions the check calls; events wait until then.
  virtual void check_begins(std::vector<TensorId> /*reads*/) {}
  virtual void check_ends() {}

  /// Ends what the session does in the background, for a program that ends without destroying it. Not for a training.
  virtual void before_exit() {}

  // Implemented once, based on the above:

  /// open(), but an error if there are no elements.
  Result<OpenTensor> open_elements(const TensorId& id);
  /// All elements in memory. Error: kOutOfMemory above `mem_limit_bytes`.
  Result<TensorPtr> load(const TensorId& id, uint64_t mem_limit_bytes = UINT64_MAX);
  /// Statistics of one tensor, cached and reused by check().
  ///
  /// The cache holds up to `kept_stats` tensors, for the lifetime of the session. Beyond that, those used by the last check or the
  /// one before it stay: a repeated check over too many tensors still finds `kept_stats` of them.
  Result<Stats> stats(const TensorId& id);
  /// The same with the description. Any thread, unless the session can step.
  StatsRow stats_row(const TensorId& id);
  /// Which counts of a tensor are known and above 0, as bits of StatField. What a running check has judged is not asked for again.
  Result<uint32_t> counts_above_zero(const TensorId& id);
  /// Compared with another tensor of the same size. The change since the previous value is cached, too.
  Result<Stats> stats(const TensorId& id, const TensorId& previous, const StatsRequest& request);
  /// A further source of statistics, asked for tensors that the session has not read yet. It gets those that it lacked.
  void use_stats_store(std::shared_ptr<StatsStore> store);
  /// `NODE:output:0`, without `@step` etc.; messages and JSON use the fields for these.
  std::string tensor_name(const TensorId& id) const;
  const Node& node(const TensorId& id) const;
  /// How many steps a change from `from` to `to` took: a number between them that no graph used is a step that was left out.
  int64_t steps_between(const TensorId& from, const TensorId& to) const;

  /// About 100 MB of statistics for paths of typical length.
  static constexpr size_t kKeptStats = size_t{1} << 17;

  explicit Session(size_t kept_stats = kKeptStats);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 protected:
  // For sessions whose values change: results are valid only as long as the value is. Drops the cached statistics of the tensors
  // for which `stale` is true.
  void forget_stats(const std::function<bool(const TensorId&)>& stale);
  /// Tensors with cached statistics.
  std::vector<TensorId> tensors_with_stats() const;
  /// The description of such a tensor at the time its statistics were computed.
  std::optional<TensorInfo> info_of_kept(const TensorId& id) const;

 private:
  friend class CheckRun;
  friend class BitsReader;
  std::unique_ptr<StatsCache> stats_cache_;
};

/// Resolves text to a tensor: `NODE`, `NODE:0`, `NODE:output:0`, `NODE:input:1`; NODE in the forms of find_node().
Result<TensorId> resolve_tensor(const Session& session, std::string_view text, int64_t step, std::optional<int> rank = {},
                                std::optional<int> graph = {}, uint32_t execution = 0);

}  // namespace msdbg
