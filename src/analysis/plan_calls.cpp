// Plans the next dump of msprobe: its config.json for chosen calls.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "analysis/plan_parts.h"

namespace msdbg {
namespace {

constexpr uint64_t kTorchFile = 1700;    // what torch.save writes around the elements
constexpr uint64_t kNumpyFile = 128;
constexpr uint64_t kTableEntry = 300;    // of dump.json, for each tensor

/// The name of the call in dump.json: a node that means another call than the same name in another step has a number behind it.
std::string entry_of(const std::string& name) {
  const size_t at = name.rfind('#');
  return at == std::string::npos || !parse_int(std::string_view(name).substr(at + 1)) ? name : name.substr(0, at);
}

bool is_module(CallRole role) {
  return role == CallRole::kModule || role == CallRole::kModuleBackward || role == CallRole::kParameterGradients;
}

/// The calls that are to be dumped, and what they cost.
class PlannedCalls {
 public:
  PlannedCalls(const DumpPlanOptions& options, DumpPlan* plan) : options_(options), plan_(plan) {}

  void add(const NodeRef& ref) {
    const Node& node = ref.graph->node(ref.node);
    if (node.role == CallRole::kNone) return add_modules_of(ref);
    if (!chosen_.emplace(ref.graph, ref.node).second) return;
    ++plan_->nodes;
    ranks_.insert(ref.graph->rank());
    names_.insert(entry_of(node.name));
    (is_module(node.role) ? modules_ : apis_) = true;
    cost(*ref.graph, node);
  }
  /// How many calls besides the chosen ones have one of the names in theirs, as msprobe compares them.
  uint64_t taken_too(std::span<const GraphPtr> graphs) {
    uint64_t more = 0;
    for (const GraphPtr& graph : graphs) {
      if (!ranks_.contains(graph->rank())) continue;
      for (const Node& node : graph->nodes()) {
        if (node.role == CallRole::kNone || chosen_.count({graph.get(), node.id}) > 0) continue;
        if (!holds_a_name(entry_of(node.name))) continue;
        ++more;
        cost(*graph, node);
      }
    }
    return more;
  }

  const char* level() const { return modules_ && apis_ ? "mix" : modules_ ? "L0" : "L1"; }
  const std::set<std::string, std::less<>>& names() const { return names_; }
  const std::set<int>& ranks() const { return ranks_; }

 private:
  /// msprobe looks for each name anywhere in an entry's: `Module.fc.Linear.forward.1` is found in `.forward.12`, `Functional.` in
  /// `MintFunctional.`.
  bool holds_a_name(std::string_view entry) const {
    if (entry.starts_with("Mint") && holds_a_name(entry.substr(4))) return true;
    for (; !entry.empty(); entry.remove_suffix(1)) {
      if (names_.contains(entry)) return true;
      if (entry.back() < '0' || entry.back() > '9') return false;
    }
    return false;
  }

  /// A parameter is recorded with the modules that own it.
  void add_modules_of(const NodeRef& ref) {
    bool any = false;
    for (const Use& use : ref.graph->users(ref.node)) {
      if (ref.graph->node(use.node).role != CallRole::kModule) continue;
      add({ref.graph, use.node});
      any = true;
    }
    if (!any) ++plan_->left_out;
  }

  void cost(const Graph& graph, const Node& node) {
    if (options_.slots != DumpedSlots::kInputs) {
      for (const OutputType& type : node.outputs) slot_cost(node, &type);
    }
    if (options_.slots == DumpedSlots::kOutputs) return;
    for (const Edge& from : node.inputs) {
      const OutputType* type = nullptr;
      if (from.node != kNoNode && from.slot < graph.node(from.node).outputs.size()) type = &graph.node(from.node).outputs[from.slot];
      slot_cost(node, type);
    }
  }
  void slot_cost(const Node& node, const OutputType* type) {
    plan_->bytes_per_step += kTableEntry;
    if (options_.saved == SavedData::kStatistic) return;
    ++plan_->files_per_step;
    const bool mindspore = node.name.starts_with("Cell.") || node.name.starts_with("Primitive.") || node.name.starts_with("Mint");
    const auto bytes = type == nullptr ? std::nullopt : bytes_of(*type);
    if (bytes) plan_->bytes_per_step += *bytes + (mindspore ? kNumpyFile : kTorchFile);
    else ++plan_->unknown_sizes;
  }

  const DumpPlanOptions& options_;
  DumpPlan* plan_;
  std::set<std::pair<const Graph*, NodeId>> chosen_;
  std::set<std::string, std::less<>> names_;
  std::set<int> ranks_;
  bool modules_ = false, apis_ = false;
};

/// [0, "2-5"]; empty means all.
nlohmann::ordered_json numbers(std::span<const StepRange> ranges) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const StepRange& range : ranges) {
    if (range.first == range.last) list.push_back(range.first);
    else list.push_back(fmt::format("{}-{}", range.first, range.last));
  }
  return list;
}

}  // namespace

Result<DumpPlan> plan_calls(std::span<const GraphPtr> graphs, std::span<const NodeRef> nodes, const DumpPlanOptions& options) {
  if (options.path.empty()) return Status(Code::kInvalidArgument, "plan: the path of the dump is empty");
  DumpPlan plan;
  plan.tool = PlanTool::kMsprobe;
  std::vector<StepRange> steps;
  if (!options.steps.is_all()) {
    auto ranges = step_ranges(options.steps, &plan.steps);
    if (!ranges) return ranges.status();
    steps = std::move(*ranges);
  }
  PlannedCalls calls(options, &plan);
  for (const NodeRef& ref : nodes) calls.add(ref);
  if (plan.nodes == 0) {
    return Status(Code::kNotFound, "plan: none of the chosen nodes is a call that msprobe records; choose calls, or parameters of modules");
  }
  size_t all = 0;
  std::set<int> ranks;
  for (const GraphPtr& graph : graphs) {
    ranks.insert(graph->rank());
    for (const Node& node : graph->nodes()) all += node.role == CallRole::kNone ? 0 : 1;
  }
  plan.everything = plan.nodes == all;
  const uint64_t more = plan.everything ? 0 : calls.taken_too(graphs);

  nlohmann::ordered_json rank_list = nlohmann::ordered_json::array();
  if (calls.ranks() != ranks) rank_list = calls.ranks();
  static constexpr const char* kDataMode[] = {"all", "input", "output"};
  const char* task = options.saved == SavedData::kStatistic ? "statistics" : "tensor";
  nlohmann::ordered_json of_task;
  of_task["scope"] = nlohmann::ordered_json::array();
  of_task["list"] = plan.everything ? std::set<std::string, std::less<>>() : calls.names();
  of_task["data_mode"] = {kDataMode[static_cast<int>(options.slots)]};
  if (options.saved == SavedData::kStatistic) of_task["summary_mode"] = "statistics";
  nlohmann::ordered_json json;
  json["task"] = task;
  json["dump_path"] = options.path;
  json["rank"] = std::move(rank_list);
  json["step"] = numbers(steps);
  json["level"] = calls.level();
  json["risk_level"] = "ALL";
  json["extra_info"] = true;
  json[task] = std::move(of_task);
  plan.json = json.dump(2) + "\n";

  if (!plan.everything) {
    plan.notes.push_back("msprobe counts the calls of each function anew in every step: where the program runs other calls, a name means "
                         "another one");
  }
  if (more > 0) {
    plan.notes.push_back(fmt::format("the names are part of {} other name{}, which msprobe dumps, too", more, more == 1 ? "" : "s"));
  }
  if (plan.unknown_sizes > 0 && options.saved != SavedData::kStatistic) {
    plan.notes.push_back(fmt::format("{} tensor{} of unknown size: left out of the estimate", plan.unknown_sizes,
                                     plan.unknown_sizes == 1 ? "" : "s"));
  }
  if (plan.left_out > 0) {
    plan.notes.push_back(
        fmt::format("{} parameter{} of modules that were not recorded: left out", plan.left_out, plan.left_out == 1 ? "" : "s"));
  }
  return plan;
}

}  // namespace msdbg
