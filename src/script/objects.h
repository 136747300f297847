// The contents of the library's userdata. Everything lives on the thread that owns the Script.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "msdbg/abi.h"
#include "msdbg/analysis.h"
#include "msdbg/html_report.h"
#include "msdbg/diff.h"
#include "msdbg/report.h"
#include "msdbg/script.h"
#include "script/lua_classes.h"

namespace msdbg::script {

struct SessionBox;
class NameIndex;

/// One virtual machine. The registry holds its address for every C function.
struct Vm {
  lua_State* L = nullptr;
  ScriptOptions options;
  Script* owner = nullptr;
  std::shared_ptr<SessionBox> at_hand;   ///< the session that the running command of the prompt works on
  std::optional<int> exit_status;        ///< set by os.exit(); then every instruction raises
  std::vector<std::string> script_dirs;  ///< of the running scripts, innermost last
  uint64_t view_bytes = 0;               ///< held by live views
  bool closing = false;
  bool at_prompt = false;                ///< an entry of the prompt is running, not a script
  int captured = 0;                      ///< number of nested redirects of standard output
  bool interrupt_reported = false;           ///< a result of this entry reported Ctrl-C; the next interrupt raises
  std::vector<std::weak_ptr<SessionBox>> live_sessions;
};

/// For the options of a core function: shows progress while an entry of the prompt runs, otherwise empty.
ProgressCallback progress_of(const Vm& vm, std::string_view what, std::string_view unit = "tensor");

/// A Lua function held by C++.
class FunctionRef {
 public:
  /// Pops the value on top of the stack and keeps it.  [-1, +0, m]
  FunctionRef(Vm& vm, lua_State* L) : vm_(&vm), ref_(luaL_ref(L, LUA_REGISTRYINDEX)) {}
  ~FunctionRef() {
    if (!vm_->closing) luaL_unref(vm_->L, LUA_REGISTRYINDEX, ref_);
  }
  FunctionRef(const FunctionRef&) = delete;
  FunctionRef& operator=(const FunctionRef&) = delete;

  void push(lua_State* L) const { lua_rawgeti(L, LUA_REGISTRYINDEX, ref_); }  // [-0, +1, -]

 private:
  Vm* vm_;
  int ref_;
};

struct NodeBox {
  std::shared_ptr<SessionBox> session;
  GraphPtr graph;
  NodeId id = kNoNode;

  const Node& node() const { return graph->node(id); }
  bool operator==(const NodeBox& other) const { return graph == other.graph && id == other.id; }
};

/// Nodes of a few graphs: a set may hold a million.
class NodeList {
 public:
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void reserve(size_t count) { items_.reserve(count); }
  void add(const NodeBox& node);
  NodeBox operator[](size_t at) const {
    const Owner& owner = owners_[items_[at].owner];
    return {owner.session, owner.graph, items_[at].id};
  }
  NodeRef ref(size_t at) const { return {owners_[items_[at].owner].graph.get(), items_[at].id}; }
  const std::shared_ptr<SessionBox>& session(size_t at) const { return owners_[items_[at].owner].session; }

 private:
  struct Owner {
    std::shared_ptr<SessionBox> session;
    GraphPtr graph;
  };
  struct Item {
    uint32_t owner = 0;
    NodeId id = kNoNode;
  };
  std::vector<Owner> owners_;
  std::vector<Item> items_;
};

struct NodeSetBox {
  std::shared_ptr<SessionBox> session;
  NodeList nodes;
  std::string text;  ///< the selector, for printing
  std::optional<Selector> selector;  ///< of exactly these nodes, from the first time that it is asked for
};

struct TensorBox {
  std::shared_ptr<SessionBox> session;
  TensorInfo info;
  std::string name;  ///< `NODE:output:0`, with the slice after it
  std::optional<Stats> stats;
  uint64_t suspension = 0;  ///< suspension of a live session in which `stats` were taken
  TensorPtr memory;  ///< set for tensors that exist only in memory, such as slices
  GraphPtr graph;    ///< of a live session: which the node's number belongs to
  int single_reads = 0;  ///< elements that were read one by one
};

/// Keeps the elements of one view alive; the Lua side reads them through `view`.
struct ViewBox {
  Vm* vm = nullptr;
  TensorPtr buffer;
  msdbg_view view = {};
  ~ViewBox() {
    if (vm != nullptr && buffer) vm->view_bytes -= buffer->bytes().size();
  }
};

struct WatchBox {
  std::weak_ptr<SessionBox> session;
  Watchpoint point;
  std::string slots = "output";
  std::shared_ptr<FunctionRef> function;
  size_t nodes = 0;  ///< number of nodes that the selector matches
  bool removed = false;
  bool once = false;                  ///< removed after it stopped the training
  int64_t ignore = 0;                 ///< number of stops to ignore
  int64_t from_step = 0;              ///< hits in earlier steps do not stop the training
  std::vector<std::string> commands;  ///< entries of the prompt to run after it stopped the training
};

struct ResultBox {
  std::shared_ptr<SessionBox> session;
  CheckResult result;
  std::string asked;               ///< for people: "the default rules"; "" for watchpoints
  std::vector<std::string> names;  ///< names of the rules or conditions that ran
  uint64_t suspension = 0;         ///< of a live session: when it was made
  std::shared_ptr<const nlohmann::ordered_json> answer{};  ///< its summary, built on first use
};

/// The outcome of a command of a live session.
struct RunBox {
  std::shared_ptr<SessionBox> session;
  RunResult result;  ///< without its check, which is in `check`
  std::string call;  ///< "step", "continue", ...
  uint64_t suspension = 0;
  std::shared_ptr<ResultBox> check;
  std::vector<int> removed;  ///< one-shot watchpoints that were hit
};

struct OriginBox {
  std::shared_ptr<SessionBox> session;
  OriginResult result;
  std::shared_ptr<const nlohmann::ordered_json> answer;  ///< built on first use
};

struct DiffBox {
  std::shared_ptr<SessionBox> a, b;
  DiffResult result;
  std::shared_ptr<const nlohmann::ordered_json> answer;  ///< built on first use
};

struct ReportBox {
  std::shared_ptr<ResultBox> check;
  std::shared_ptr<OriginBox> origin;
};

/// An open session with the state that the Lua side adds to it.
struct SessionBox : std::enable_shared_from_this<SessionBox> {
  Vm* vm = nullptr;
  std::unique_ptr<Session> session;  ///< null after close()
  SessionKind kind = SessionKind::kDump;
  std::string source;
  std::optional<int64_t> current_step;
  std::optional<int> current_rank;   ///< nullopt: all ranks
  CheckOptions defaults;
  std::vector<std::shared_ptr<WatchBox>> watches;
  int next_watch_id = 1;
  std::optional<CheckOptions> last_check;
  std::shared_ptr<ResultBox> last_result;  ///< without its session; incomplete if that check was interrupted

  std::shared_ptr<NameIndex> names;  ///< built for the first completion
  size_t graph_at_hand = 0;          ///< the graph of the last node.key

  std::string in_use;  ///< the running call ("check"): its functions cannot start another one or close the session

  // Of live sessions:
  LiveSession* live = nullptr;   ///< `session` if it is live, else null
  LiveState seen_state = LiveState::kWaiting;  ///< as of the last look
  bool end_reported = false;         ///< the "end" callbacks have run
  uint64_t suspension = 1;       ///< counts the stops of the training; values of older ones are invalid
  bool watches_changed = true;   ///< since they were sent to the training
  std::map<std::string, std::vector<std::shared_ptr<FunctionRef>>> callbacks;
  /// The commands of the watchpoints that stopped the last command, in order. The prompt runs them.
  std::vector<std::vector<std::string>> due_commands;
  int64_t runs = 0;              ///< commands that ran the training
  lua_State* thread = nullptr;   ///< the thread that runs the current call and the functions of watchpoints

  /// Error (ScriptError): "session is closed".
  Session& open();
  /// A training may describe its graph again, and nodes have other numbers then: finds the node by its name. False if it is gone.
  bool renumber(GraphPtr& graph, NodeId& node) const;
  /// Starts a new suspension: drops values of older ones and moves to the training's current step.
  void begin_suspension();
  /// Checks the state: if the training (or another process) was held meanwhile, a new suspension begins.
  void refresh_state();
  /// True while a training process (not a recording) depends on the commands of this session.
  bool drives_training();
  /// The elements of a tensor; caches recently used ones within the memory limit.
  TensorPtr elements(const TensorBox& tensor);
  /// elements() if they are in memory, else null.
  TensorPtr cached_elements(const TensorBox& tensor);
  /// Releases the memory at once.
  void forget(const TensorId& id);
  void close();

 private:
  struct CachedTensor {
    TensorId id;
    TensorPtr buffer;
  };
  std::list<CachedTensor> cached_;  ///< most recently used first
  uint64_t cached_bytes_ = 0;
};

// Error (ScriptError): a session of the result is closed.
inline void require_open(const ResultBox& box) { box.session->open(); }
inline void require_open(const OriginBox& box) { box.session->open(); }
inline void require_open(const DiffBox& box) {
  box.a->open();
  box.b->open();
}

/// Marks the session while a check or a search runs on it. Error (ScriptError): one is already running.
class InUse {
 public:
  InUse(SessionBox& session, std::string_view call);
  ~InUse() { session_.in_use.clear(); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  SessionBox& session_;
};

std::shared_ptr<SessionBox> make_session_box(Vm& vm, std::unique_ptr<Session> session);

#define MSDBG_LUA_CLASS(Type, word)                        \
  template <>                                              \
  struct ClassName<Type> {                                 \
    static constexpr const char* value = word;             \
    static constexpr const char* registry = "msdbg." word; \
  }
MSDBG_LUA_CLASS(SessionBox, "session");
MSDBG_LUA_CLASS(NodeBox, "node");
MSDBG_LUA_CLASS(NodeSetBox, "node set");
MSDBG_LUA_CLASS(TensorBox, "tensor");
MSDBG_LUA_CLASS(ViewBox, "view memory");
MSDBG_LUA_CLASS(WatchBox, "watchpoint");
MSDBG_LUA_CLASS(ResultBox, "check result");
MSDBG_LUA_CLASS(RunBox, "run result");
MSDBG_LUA_CLASS(OriginBox, "origin result");
MSDBG_LUA_CLASS(DiffBox, "diff result");
MSDBG_LUA_CLASS(ReportBox, "report");
#undef MSDBG_LUA_CLASS

// ---- shared between the binding files ------------------------------------------------------------------------------

// Each defines its classes and adds its functions to the table on top of the stack.  [-0, +0, m]
void bind_session(lua_State* L);
void bind_node(lua_State* L);
void bind_node_set(lua_State* L);
void bind_tensor(lua_State* L);
void bind_tensor_numbers(lua_State* L);
void bind_expression(lua_State* L);
void bind_watch(lua_State* L);
void bind_check(lua_State* L);
void bind_live(lua_State* L);
void bind_run(lua_State* L);
void bind_analysis(lua_State* L);
void bind_checkpoint(lua_State* L);
void bind_diff(lua_State* L);
void bind_follow(lua_State* L);
void bind_abi(lua_State* L);
void bind_text(lua_State* L);
void bind_completion(lua_State* L);
void bind_json(lua_State* L);
void bind_guide(lua_State* L);
void bind_table(lua_State* L);
void bind_terminal(lua_State* L);
void bind_output(lua_State* L);
void bind_rules(lua_State* L);
void bind_commands(lua_State* L);

/// Table style for the current terminal. Without colours, because Lua may write the text anywhere.
ReportStyle table_style(lua_State* L);
/// A node set, a node, a selector text, or a list of these.
Selector selector_argument(lua_State* L, int index, std::string_view what);
GraphPtr graph_pointer(SessionBox& session, const Graph* graph);
/// The tensor that a method is called on, with the number that its node has now.
TensorBox& current_tensor(lua_State* L);
void renumber(TensorBox& tensor);
void push_node(lua_State* L, const std::shared_ptr<SessionBox>& session, GraphPtr graph, NodeId id);
/// A tensor, or nil, message, code.  [-0, +(1|3), m]
int push_tensor(lua_State* L, const std::shared_ptr<SessionBox>& session, const TensorId& id);
/// The step for a call: option `step`, else the current one.
int64_t step_option(OptionTable& options, const SessionBox& session);
/// The ranks for a call: option `ranks`, else the current one, else all.
IntSet ranks_option(OptionTable& options, const SessionBox& session);
/// The rank for a call: option `rank`, else the current one.
std::optional<int> rank_option(OptionTable& options, const SessionBox& session);
const Stats& stats_of(TensorBox& tensor);
/// What an operator took as an input: the recorded input, or else the value that it comes from. nullopt: it has no such input.
std::optional<TensorId> operand_of(Session& session, const TensorId& tensor, uint32_t index);
inline constexpr uint64_t kPollEvery = 1 << 16;    ///< elements between two checks of the interrupt flag
inline constexpr uint64_t kMostPlaces = 1'000'000;  ///< limit against accidental huge results
/// Option `key`: the entries of a guide, { { chapter =, kind =, text =, ... }, ... }.
std::vector<GuideEntry> guide_entries(lua_State* L, OptionTable& options, const char* key);
/// core.page_form(path): "html" or "markdown", by the extension.  [-0, +1, e]
int page_form_of(lua_State* L);
/// The page of the report at 1, written to the path at 2 or returned as text; options at 3.  [-0, +1, e]
int render_page(lua_State* L, PageForm form);
/// The elements of the tensor whose method was called. Error (ScriptError): its type is not numeric.
TensorPtr numbers_of(lua_State* L, std::string_view call);
/// {i, j, ..., value =, index =}  [-0, +1, m]
void push_place(lua_State* L, uint64_t flat, double value, std::span<const int64_t> shape);
void push_stats(lua_State* L, const Stats& stats, std::span<const int64_t> shape);
void push_shape(lua_State* L, std::span<const int64_t> shape);
void push_coordinates(lua_State* L, uint64_t flat, std::span<const int64_t> shape);
void push_stack(lua_State* L, const std::vector<StackFrame>& stack);
/// Sets one of the metatables of scripts/msdbg/printed_results.lua on the table on top, by name.  [-0, +0, m]
void set_result_class(lua_State* L, const char* name);
std::string step_text(const SessionBox& session);
/// The result of a function of a watchpoint or predicate for a tensor. `L` is the running thread.
ScriptVerdict call_watch_function(lua_State* L, SessionBox& session, const WatchBox& watch,
                                  const CheckedTensor& tensor);
/// A check result whose hits are created on demand.  [-0, +1, m]
void push_result(lua_State* L, std::shared_ptr<ResultBox> result);
/// The watchpoints of a session for check() and live sessions. Functions run on SessionBox::thread.
std::vector<Watchpoint> watchpoints_of(SessionBox& box);
/// s:recheck() in a training process.
int recheck_live(lua_State* L, SessionBox& box);
/// Passes new events to ScriptOptions::on_event.
void report_events(SessionBox& box);
/// Error (ScriptError): the session is a dump, or closed.
LiveSession& live_of(SessionBox& box, std::string_view call);
/// Option `timeout` in seconds.
std::optional<std::chrono::milliseconds> timeout_option(OptionTable& options, std::string_view call);
/// The tensor object for functions of watchpoints and rules, with its statistics.  [-0, +1, m]
void push_checked_tensor(lua_State* L, SessionBox& session, const CheckedTensor& tensor);
/// check() with functions that run on `L`; marks the session as in use.
Result<CheckResult> check_here(lua_State* L, SessionBox& box, const std::vector<Watchpoint>& points, const CheckOptions& options);
/// Stores a result as the session's last one and pushes it. Error (ScriptError): the check was interrupted.  [-0, +1, e]
int give_check(lua_State* L, SessionBox& box, CheckResult found, std::string asked, std::vector<std::string> names);
/// The names of the enabled watchpoints.
std::vector<std::string> names_of(std::span<const Watchpoint> points);
/// 'output', 'input', 'all' or a slot. Error (ScriptError) that starts with `what`.
struct ChosenSlots {
  bool inputs, outputs;
  std::optional<uint32_t> slot;
};
ChosenSlots read_slots(const std::string& text, std::string_view what);
/// The options of a check at `index`: the session's defaults overridden by steps, ranks, max_hits, report_missing, ...
CheckOptions check_options_at(lua_State* L, int index, const SessionBox& box, const char* call);
/// Applies `semantics`, `threads`, `mem_limit`.
void read_check_options(OptionTable& options, CheckOptions* into);

}  // namespace msdbg::script
