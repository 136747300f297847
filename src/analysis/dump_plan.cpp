#include "msdbg/dump_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/plan_parts.h"
#include "msdbg/tensor.h"

namespace msdbg {
namespace {

constexpr uint64_t kNpyHeader = 128;      // of files of up to five dimensions
constexpr uint64_t kStatisticRow = 200;   // a long name, a time stamp and a dozen numbers

struct Version {
  int major = 99, minor = 0;
  bool at_least(int a, int b) const { return major > a || (major == a && minor >= b); }
};

Version version_of(const std::string& text) {
  const auto parts = split(text, '.');
  const auto major = parts.empty() ? std::nullopt : parse_int(parts[0]);
  const auto minor = parts.size() < 2 ? std::nullopt : parse_int(parts[1]);
  if (!major || !minor) return {};
  return {static_cast<int>(*major), static_cast<int>(*minor)};
}

bool only(std::string_view text, std::string_view extra) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || extra.find(c) != std::string_view::npos;
  });
}

/// `0:10,12` in MindSpore's notation, `0-10|12`, and the number of steps.
Result<std::string> iterations(const IntSet& steps, std::optional<uint64_t>* count) {
  if (steps.is_all()) return std::string("all");
  const Result<std::vector<StepRange>> ranges = step_ranges(steps, count);
  if (!ranges) return ranges.status();
  std::string out;
  for (const StepRange& range : *ranges) {
    if (!out.empty()) out += '|';
    out += range.first == range.last ? std::to_string(range.first) : fmt::format("{}-{}", range.first, range.last);
  }
  return out;
}

// True for a parameter or operator for which a run writes files.
bool is_written(const Node& node) {
  if (node.kind == NodeKind::kConstant) return !node.file_key.empty();
  return node.kind == NodeKind::kParameter || !is_structural(node.op);
}

// A regular expression for the name. Uses `.` for characters that would need a backslash, because MindSpore 2.7 matches nothing
// after one.
std::string pattern_of(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (std::string_view("^$\\*+?()[]{}|").find(c) != std::string_view::npos) c = '.';
  }
  return out;
}

/// Position of `-op12` at the end; npos if missing.
size_t number_at(std::string_view name) {
  const size_t at = name.rfind("-op");
  if (at == std::string_view::npos || at + 3 >= name.size()) return std::string_view::npos;
  const auto digits = name.substr(at + 3);
  return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; }) ? at : std::string_view::npos;
}

class Kernels {
 public:
  explicit Kernels(const Version& version) : numbers_differ_(version.at_least(2, 7)) {}

  void add(const Node& node) {
    if (node.kind == NodeKind::kOperator && numbers_differ_) {
      // Patterns match the file's number, which may differ from the graph's.
      if (const size_t at = number_at(node.name); at != std::string::npos) {
        const std::string_view stem = std::string_view(node.name).substr(0, at);
        names_.insert(fmt::format("name-regex(^{}-op[0-9]+$)", pattern_of(stem)));
        stems_.emplace(stem);
        return;
      }
    }
    if (node.kind == NodeKind::kParameter && numbers_differ_) {
      names_.insert(fmt::format("name-regex(^{}$)", pattern_of(node.name)));  // the bare name would also match moments.NAME
      return;
    }
    names_.insert(node.name);
  }
  const std::set<std::string>& names() const { return names_; }
  /// True for an operator that a pattern of another one takes, too.
  bool takes(const Node& node) const {
    const size_t at = node.kind == NodeKind::kOperator ? number_at(node.name) : std::string::npos;
    return at != std::string::npos && stems_.count(std::string_view(node.name).substr(0, at)) > 0;
  }
  bool loose() const { return numbers_differ_; }

 private:
  bool numbers_differ_;
  std::set<std::string> names_;
  std::set<std::string, std::less<>> stems_;  // names without their numbers
};

class Cost {
 public:
  Cost(const DumpPlanOptions& options, DumpPlan* plan) : options_(options), plan_(plan) {}

  void add(const Graph& graph, const Node& node) {
    if (node.kind != NodeKind::kOperator) {
      // Without outputs, no parameters are written.
      if (options_.slots != DumpedSlots::kInputs) outputs(node);
      return;
    }
    if (options_.slots != DumpedSlots::kInputs) outputs(node);
    if (options_.slots == DumpedSlots::kOutputs) return;
    for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
      const Edge from = graph.effective_producer(node.id, slot);
      if (!carries_value(graph, from)) continue;
      if (from.node == kNoNode) {
        slot_cost(nullptr);  // it is still written
      } else {
        const auto& types = graph.node(from.node).outputs;
        slot_cost(from.slot < types.size() ? &types[from.slot] : nullptr);
      }
    }
  }

 private:
  void outputs(const Node& node) {
    for (const OutputType& type : node.outputs) slot_cost(&type);
  }
  void slot_cost(const OutputType* type) {
    if (options_.saved != SavedData::kTensor) plan_->bytes_per_step += kStatisticRow;
    if (options_.saved == SavedData::kStatistic) return;
    ++plan_->files_per_step;
    const auto bytes = type == nullptr ? std::nullopt : bytes_of(*type);
    if (bytes) plan_->bytes_per_step += *bytes + kNpyHeader;
    else ++plan_->unknown_sizes;
  }

  const DumpPlanOptions& options_;
  DumpPlan* plan_;
};

Status check_words(const DumpPlanOptions& o, const Version& version) {
  if (o.path.empty() || o.path.front() != '/' || !only(o.path, "_-/")) {
    return {
        Code::kInvalidArgument,
        fmt::format("path '{}': MindSpore takes an absolute path of letters, digits, '_', '-' and '/' only, no dots, no blanks", o.path)};
  }
  if (!only(o.net_name, "_-")) {
    return {Code::kInvalidArgument, fmt::format("net name '{}': letters, digits, '_' and '-' are possible", o.net_name)};
  }
  if (o.saved == SavedData::kTensor) return {};
  if (o.device_target == "CPU") {
    return {Code::kInvalidArgument, "statistics: MindSpore writes none on a CPU; plan whole tensors and let msdbg compute them"};
  }
  if (!version.at_least(1, 6)) {
    return {Code::kInvalidArgument,
            fmt::format("statistics: MindSpore {} ignores saved_data (1.6 and later have it); plan whole tensors", o.version)};
  }
  return {};
}

nlohmann::ordered_json configuration(const DumpPlanOptions& o, const Version& version, const std::string& iteration, const DumpPlan& plan,
                                     const Kernels& kernels) {
  nlohmann::ordered_json common;
  common["dump_mode"] = plan.everything ? 0 : 1;
  common["path"] = o.path;
  common["net_name"] = o.net_name;
  common["iteration"] = iteration;
  static constexpr const char* kSaved[] = {"tensor", "statistic", "full"};
  if (version.at_least(1, 6)) common["saved_data"] = kSaved[static_cast<int>(o.saved)];
  if (o.saved != SavedData::kTensor && version.at_least(2, 3)) {
    common["statistic_category"] = {
        "max", "min", "avg", "l2norm", "count", "zero count", "nan count", "negative inf count", "positive inf count"};
  }
  common["input_output"] = static_cast<int>(o.slots);
  common["kernels"] = plan.everything ? std::set<std::string>() : kernels.names();
  common["support_device"] = {0, 1, 2, 3, 4, 5, 6, 7};
  common["op_debug_mode"] = 0;
  nlohmann::ordered_json all;
  all["common_dump_settings"] = std::move(common);
  all["e2e_dump_settings"] = {{"enable", true}, {"trans_flag", true}};
  return all;
}

}  // namespace

Result<std::vector<StepRange>> step_ranges(const IntSet& steps, std::optional<uint64_t>* count) {
  std::vector<StepRange> ranges;
  *count = 0;
  const std::string text = steps.text();
  for (const std::string_view item : split(text, ',')) {
    const size_t colon = item.find(':');
    const auto first = colon == 0 ? std::optional<int64_t>(0) : parse_int(item.substr(0, colon));
    const auto last = colon == std::string_view::npos ? first : parse_int(item.substr(colon + 1));
    if (!first || !last || *first < 0) {
      return Status(Code::kInvalidArgument, fmt::format("steps '{}': a plan needs an end and no negative step, e.g. 0:10; or all", text));
    }
    ranges.push_back({*first, *last});
    **count += static_cast<uint64_t>(*last - *first) + 1;
  }
  return ranges;
}

std::optional<uint64_t> bytes_of(const OutputType& type) {
  const auto count = !type.shape ? std::nullopt : element_count(*type.shape);
  const bool dynamic = count && std::any_of(type.shape->begin(), type.shape->end(), [](int64_t d) { return d < 0; });
  if (!count || dynamic || item_size(type.dtype) == 0) return std::nullopt;
  return *count * item_size(type.dtype);
}

DumpPlanOptions plan_options_of(const SessionInfo& info, bool coarse) {
  DumpPlanOptions options;
  if (info.layout == "P") {  // msprobe computes statistics everywhere
    if (coarse) options.saved = SavedData::kStatistic;
    return options;
  }
  options.version = info.framework_version;
  options.device_target = info.device_target;
  if (!info.nets.empty()) options.net_name = info.nets.front();
  // A CPU run has no statistics; if the device is unknown, elements are the safe choice.
  if (coarse && !info.device_target.empty() && info.device_target != "CPU") options.saved = SavedData::kStatistic;
  return options;
}

Result<DumpPlan> plan_dump(std::span<const GraphPtr> graphs, std::span<const NodeRef> nodes, const DumpPlanOptions& options) {
  if (!graphs.empty() && graphs.front()->recorded_calls()) return plan_calls(graphs, nodes, options);
  const Version version = version_of(options.version);
  if (!options.version.empty() && version.major == 99) {
    return Status(Code::kInvalidArgument,
                  fmt::format("version '{}' is not a MindSpore version; use e.g. 2.7.1", printable(options.version)));
  }
  if (Status status = check_words(options, version); !status.ok()) return status;
  DumpPlan plan;
  auto iteration = iterations(options.steps, &plan.steps);
  if (!iteration) return iteration.status();

  size_t writable = 0;
  for (const GraphPtr& graph : graphs) {
    writable += static_cast<size_t>(std::count_if(graph->nodes().begin(), graph->nodes().end(), is_written));
  }
  Kernels kernels(version);
  std::set<std::pair<const Graph*, NodeId>> chosen;
  Cost cost(options, &plan);
  for (const NodeRef& ref : nodes) {
    const Node& node = ref.graph->node(ref.node);
    if (!is_written(node)) {
      ++plan.left_out;
      continue;
    }
    ++plan.nodes;
    chosen.emplace(ref.graph, ref.node);
    kernels.add(node);
    cost.add(*ref.graph, node);
  }
  uint64_t more = 0;
  for (const GraphPtr& graph : graphs) {
    for (const Node& node : graph->nodes()) {
      if (!is_written(node) || !kernels.takes(node) || chosen.count({graph.get(), node.id}) > 0) continue;
      ++more;
      cost.add(*graph, node);
    }
  }
  if (plan.nodes == 0)
    return Status(Code::kNotFound, "plan: none of the chosen nodes is ever written by a run; choose operators or parameters");
  plan.everything = plan.nodes == writable;
  plan.json = configuration(options, version, *iteration, plan, kernels).dump(2) + "\n";

  if (!plan.everything && kernels.loose()) {
    std::string note =
        "since 2.7, numbers in file names differ from those in the graph: every -opN with the same scope and type is included";
    if (more > 0) note += fmt::format(", {} more than were chosen", more);
    plan.notes.push_back(std::move(note));
  }
  if (!plan.size_known()) {
    plan.notes.push_back("the size is unknown: without a readable graph file no shape is");
  } else if (plan.unknown_sizes > 0) {
    plan.notes.push_back(fmt::format("{} slots have no size in the graph; the estimate leaves them out", plan.unknown_sizes));
  }
  if (options.slots == DumpedSlots::kInputs) plan.notes.push_back("without outputs no parameter and no constant is written");
  return plan;
}

std::string plan_json(const DumpPlan& plan) {
  nlohmann::ordered_json out;
  out["nodes"] = plan.nodes;
  out["left_out"] = plan.left_out;
  out["bytes_per_step"] = plan.size_known() ? nlohmann::ordered_json(plan.bytes_per_step) : nlohmann::ordered_json(nullptr);
  out["files_per_step"] = plan.files_per_step;
  out["unknown_sizes"] = plan.unknown_sizes;
  out["steps"] = plan.steps ? nlohmann::ordered_json(*plan.steps) : nlohmann::ordered_json(nullptr);
  out["notes"] = plan.notes;
  out["configuration"] = nlohmann::ordered_json::parse(plan.json);
  return out.dump(2) + "\n";
}

std::vector<NodeRef> nodes_around(const Graph& graph, NodeId centre, int hops) {
  std::set<NodeId> reached{centre};
  std::vector<NodeId> edge{centre};
  for (int hop = 0; hop < hops && !edge.empty(); ++hop) {
    std::vector<NodeId> next;
    const auto reach = [&](NodeId id) {
      if (id != kNoNode && reached.insert(id).second) next.push_back(id);
    };
    for (const NodeId id : edge) {
      const Node& node = graph.node(id);
      for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
        if (const Edge from = graph.effective_producer(id, slot); carries_value(graph, from)) reach(from.node);
      }
      for (const Use& use : graph.effective_users(id)) reach(use.node);
    }
    edge = std::move(next);
  }
  std::vector<NodeRef> out;
  for (const NodeId id : reached) out.push_back({&graph, id});
  std::sort(out.begin(), out.end(),
            [&](const NodeRef& a, const NodeRef& b) { return graph.node(a.node).order < graph.node(b.node).order; });
  return out;
}

}  // namespace msdbg
