#include "analysis/match_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "msdbg/tensor.h"

namespace msdbg {
namespace {

bool is_function(CallRole role) { return role == CallRole::kForward || role == CallRole::kOptimizer; }
bool is_module_call(CallRole role) {
  return role == CallRole::kModule || role == CallRole::kModuleBackward || role == CallRole::kParameterGradients;
}

bool in_library(std::string_view file) {
  return file.find("site-packages/") != std::string_view::npos || file.find("dist-packages/") != std::string_view::npos;
}

std::string_view base_name(std::string_view file) { return file.substr(file.rfind('/') + 1); }

/// `Torch.log` of `Torch.log.0.forward`: the name without the number of the call.
std::string function_of(const Node& node) {
  std::string out;
  for (const std::string_view part : split(node.name, '.')) {
    if (parse_int(part)) break;
    out += (out.empty() ? "" : ".") + std::string(part);
  }
  return out;
}

/// The lines of the user's program, "" if they are not known.
std::string lines_of(const Node& node) {
  std::string out;
  for (const StackFrame& frame : node.stack) {
    if (!in_library(frame.file.get())) out += fmt::format("{}:{} ", base_name(frame.file.get()), frame.line);
  }
  return out;
}

/// What the innermost of these lines says, for a program that was edited elsewhere.
std::string code_of(const Node& node) {
  for (const StackFrame& frame : node.stack) {
    if (in_library(frame.file.get()) || frame.code.get().empty()) continue;
    return fmt::format("{} {}", base_name(frame.file.get()), frame.code.get());
  }
  return "";
}

std::string shapes_of(const Node& node) {
  std::string out;
  for (const OutputType& type : node.outputs) out += type.shape ? shape_text(*type.shape) : "?";
  return out;
}

/// `net.conv1 forward 0`: without the framework's word for a module, and without its class.
std::string module_of(const Node& node) {
  const std::vector<std::string_view> parts = split(node.name, '.');
  if (parts.size() < 4) return node.name;
  std::string out;
  for (size_t i = 1; i + 3 < parts.size(); ++i) out += std::string(parts[i]) + ".";
  return fmt::format("{} {} {}", out, parts[parts.size() - 2], parts.back());
}

bool has_scopes(const Graph& graph) {
  const auto has_scope = [](const Node& node) { return is_function(node.role) && !node.scope.get().empty(); };
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), has_scope);
}

/// What its names say: the two frameworks have other words for modules and for what is below the functions.
bool is_of_mindspore(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    if (node.role == CallRole::kNone) return false;
    return node.name.starts_with("Cell.") || node.name.starts_with("Primitive.") || node.name.starts_with("Mint");
  });
}

class CallMatcher {
 public:
  CallMatcher(const Graph& a, const Graph& b, const std::vector<NodeId>& taken_a, const std::vector<NodeId>& taken_b)
      : a_(a), b_(b), of_a_(taken_a), of_b_(taken_b) {}

  std::vector<std::pair<NodeId, NodeId>> run() {
    const auto by_name = [](const Node& node) { return node.name; };
    round([](const Node& node) { return node.kind != NodeKind::kOperator; }, by_name, true);
    round([](const Node& node) { return is_module_call(node.role); }, by_name, true);
    round([](const Node& node) { return is_module_call(node.role); }, module_of, false);
    const auto function = [](const Node& node) { return is_function(node.role); };
    // Level L1 records no modules.
    const bool scoped = has_scopes(a_) && has_scopes(b_);
    const auto with = [scoped](std::function<std::string(const Node&)> what) {
      return [scoped, what = std::move(what)](const Node& node) {
        const std::string found = what(node);
        return found.empty() ? "" : fmt::format("{}\n{}\n{}", function_of(node), scoped ? node.scope.get() : "", found);
      };
    };
    const auto lines_and_shapes = [](const Node& node) {
      const std::string lines = lines_of(node);
      return lines.empty() ? "" : lines + shapes_of(node);
    };
    round(function, with(lines_and_shapes), true);
    round(function, with(lines_of), true);
    round(function, with(code_of), false);
    round(function, with(shapes_of), false);
    // Without lines, only the number is left.
    round([&](const Node& node) { return function(node) && node.stack.empty(); }, by_name, true);
    // Of one function, the two frameworks record other gradients: PyTorch those of the last step that it takes inside.
    if (is_of_mindspore(a_) != is_of_mindspore(b_)) return std::move(found_);
    round_of_gradients();
    round([](const Node& node) { return node.role == CallRole::kBackward && node.stack.empty(); }, by_name, true);
    return std::move(found_);
  }

 private:
  using Chosen = std::function<bool(const Node&)>;
  using Key = std::function<std::string(const Node&)>;
  using ByKey = std::map<std::string, std::vector<NodeId>>;

  static ByKey grouped(const Graph& graph, const std::vector<NodeId>& taken, const Chosen& chosen, const Key& key) {
    ByKey groups;
    const auto add = [&](const Node& node) {
      if (taken[node.id] != kNoNode || !chosen(node)) return;
      if (std::string found = key(node); !found.empty()) groups[std::move(found)].push_back(node.id);
    };
    for (const Node& node : graph.nodes()) {
      if (node.kind != NodeKind::kOperator) add(node);
    }
    for (const NodeId id : graph.execution_order()) add(graph.node(id));
    return groups;
  }

  /// Pairs free nodes with the same key in the order of the run. If one side has more of them, the order says nothing: `partly` then
  /// pairs those of the same name.
  void round(const Chosen& chosen, const Key& key, bool partly) {
    ByKey left = grouped(a_, of_a_, chosen, key), right = grouped(b_, of_b_, chosen, key);
    for (const auto& [text, nodes] : left) {
      const auto other = right.find(text);
      if (other == right.end()) continue;
      if (other->second.size() == nodes.size()) {
        for (size_t i = 0; i < nodes.size(); ++i) add(nodes[i], other->second[i]);
      } else if (partly) {
        for (const NodeId x : nodes) {
          const auto y = std::ranges::find_if(other->second, [&](NodeId id) { return b_.node(id).name == a_.node(x).name; });
          if (y != other->second.end()) add(x, *y);
        }
      }
    }
  }

  /// A gradient function belongs to its forward call.
  void round_of_gradients() {
    std::map<NodeId, NodeId> of_forward;  // of b: forward -> backward
    for (const Node& node : b_.nodes()) {
      if (node.role == CallRole::kBackward && of_b_[node.id] == kNoNode) of_forward.emplace(b_.call_links(node.id).forward, node.id);
    }
    for (const Node& node : a_.nodes()) {
      if (node.role != CallRole::kBackward || of_a_[node.id] != kNoNode) continue;
      const NodeId forward = a_.call_links(node.id).forward;
      if (forward == kNoNode || of_a_[forward] == kNoNode) continue;
      if (const auto other = of_forward.find(of_a_[forward]); other != of_forward.end()) add(node.id, other->second);
    }
  }

  void add(NodeId x, NodeId y) {
    of_a_[x] = y;
    of_b_[y] = x;
    found_.emplace_back(x, y);
  }

  const Graph &a_, &b_;
  std::vector<NodeId> of_a_, of_b_;
  std::vector<std::pair<NodeId, NodeId>> found_;
};

}  // namespace

std::vector<std::pair<NodeId, NodeId>> match_recorded_calls(const Graph& a, const Graph& b, const std::vector<NodeId>& taken_a,
                                                            const std::vector<NodeId>& taken_b) {
  return CallMatcher(a, b, taken_a, taken_b).run();
}

}  // namespace msdbg
