// Names that are in no graph. What the compiler did with them shows in the graph: a longer operator in the same scope, one that
// reads the same parameters, or one whose code names the same cell.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/why.h"
#include "msdbg/node_names.h"

namespace msdbg {
namespace {

constexpr size_t kInstead = 5;

struct NameParts {
  std::string scope, last, op;  ///< op: `MatMul` of `MatMul-op0`
  std::string cell, member;     ///< `fc1-Dense` and `fc1`
};

NameParts split_name(std::string_view name) {
  NameParts asked;
  asked.scope = scope_of(name);
  asked.last = last_component(name);
  const size_t number = asked.last.rfind("-op");
  const bool numbered = number != std::string::npos && parse_int(asked.last.substr(number + 3)).has_value();
  asked.op = numbered ? asked.last.substr(0, number) : asked.last;
  asked.cell = last_component(asked.scope);
  asked.member = asked.cell.substr(0, asked.cell.find('-'));
  return asked;
}

bool ends_with_scope(std::string_view scope, std::string_view end) {
  return !end.empty() && (scope == end || (scope.ends_with(end) && scope[scope.size() - end.size() - 1] == '/'));
}

struct Signs {
  int weight = 0;
  std::vector<std::string> reasons;
};

/// Signs that `node` performs the missing operator.
Signs signs_of(const Graph& graph, const Node& node, const NameParts& asked) {
  Signs signs;
  if (node.kind != NodeKind::kOperator || node.op.size() <= asked.op.size() || !contains_nocase(node.op, asked.op)) return signs;
  if (ends_with_scope(node.scope, asked.scope)) {
    signs.weight += 3;
    signs.reasons.push_back(fmt::format("it is in the same scope, and its type {} contains {}", node.op, asked.op));
  }
  if (asked.member.empty()) return signs;
  for (uint32_t slot = 0; slot < node.inputs.size(); ++slot) {
    const Edge edge = graph.effective_producer(node.id, slot);
    if (edge.node == kNoNode || graph.node(edge.node).kind != NodeKind::kParameter) continue;
    const std::string& parameter = graph.node(edge.node).name;
    if (!parameter.starts_with(asked.member + ".") && parameter.find("." + asked.member + ".") == std::string::npos) continue;
    signs.weight += 3;
    signs.reasons.push_back(
        fmt::format("it reads {}, a parameter of {}, and its type {} contains {}", parameter, asked.cell, node.op, asked.op));
    break;
  }
  for (const StackFrame& frame : node.stack) {
    if (frame.code->find("self." + asked.member + "(") == std::string::npos) continue;
    signs.weight += 1;
    signs.reasons.push_back(fmt::format("it comes from {}:{}   {}", frame.file, frame.line, frame.code));
    break;
  }
  return signs;
}

bool chosen(const WhyOptions& options, const Graph& graph) {
  return (!options.rank || graph.rank() == *options.rank) && (!options.graph || graph.id() == *options.graph);
}

/// The node most likely to contain the missing operator; only with a sure sign.
bool find_fused(const Session& session, const NameParts& asked, const WhyOptions& options, WhyAnswer& answer) {
  const Graph* owner = nullptr;
  const Node* best = nullptr;
  Signs found;
  for (const GraphPtr& graph : session.graphs()) {
    if (!chosen(options, *graph)) continue;
    for (const Node& node : graph->nodes()) {
      Signs signs = signs_of(*graph, node, asked);
      if (signs.weight < 3 || signs.weight <= found.weight) continue;
      found = std::move(signs);
      best = &node;
      owner = graph.get();
    }
  }
  if (best == nullptr) return false;
  answer.kind = WhyKind::kFused;
  answer.answer =
      fmt::format("fused: the compiled graph has no {} of its own, {} does its work together with others", asked.last, best->name);
  for (std::string& reason : found.reasons) answer.evidence.push_back({std::move(reason), owner->source_path()});
  answer.instead = {best->name};
  answer.next = "the value between the fused operators never existed in memory; switch fusion off for a run if it is needed";
  return true;
}

/// The scope exists, or the code names the cell, but there is no such operator.
bool find_removed(const Session& session, const NameParts& asked, const WhyOptions& options, WhyAnswer& answer) {
  std::vector<std::string> same_op, in_scope;
  std::set<std::string> types;
  const StackFrame* frame = nullptr;
  std::string path;
  for (const GraphPtr& graph : session.graphs()) {
    if (!chosen(options, *graph)) continue;
    for (const Node& node : graph->nodes()) {
      if (node.kind != NodeKind::kOperator || is_structural(node.op)) continue;
      if (ends_with_scope(node.scope, asked.scope)) {
        path = graph->source_path();
        (to_lower(node.op) == to_lower(asked.op) ? same_op : in_scope).push_back(node.name);
        types.insert(node.op);
      }
      if (asked.member.empty() || frame != nullptr) continue;
      for (const StackFrame& each : node.stack) {
        if (each.code->find("self." + asked.member + "(") != std::string::npos) frame = &each;
      }
    }
  }
  if (!same_op.empty()) {
    // Another number: releases and later graphs of a process number differently.
    answer.kind = WhyKind::kNeverExisted;
    answer.answer =
        fmt::format("no {} in {}, but there is {}: the numbers after -op differ between releases, and between the networks of a run",
                    asked.last, asked.scope, fmt::join(same_op, ", "));
    answer.evidence.push_back({fmt::format("operators {} of this scope: {}", asked.op, fmt::join(same_op, ", ")), path});
    answer.instead = same_op;
    return true;
  }
  // Only a cell of the program (`fc1-Dense`) or a call in its code proves that such an operator once existed.
  const bool was_there = frame != nullptr || (!in_scope.empty() && asked.cell.find('-') != std::string::npos);
  if (!was_there || asked.last.find("-op") == std::string::npos) return false;
  const std::vector<std::string> known(types.begin(), types.end());
  if (!nearest(asked.op, known, 1).empty()) return false;  // mistyped rather than removed
  answer.kind = WhyKind::kOptimisedAway;
  answer.answer = fmt::format(
      "optimised away: the compiled graph has no {} {}; it was folded into a constant, found to be unused or a copy of another, or only "
      "relabels memory",
      asked.op, asked.cell.empty() ? "of this name" : "in " + asked.cell);
  if (!in_scope.empty()) {
    std::vector<std::string> some(in_scope.begin(), in_scope.begin() + static_cast<std::ptrdiff_t>(std::min(kInstead, in_scope.size())));
    answer.evidence.push_back({fmt::format("{} operators are left in this scope: {}{}", in_scope.size(), fmt::join(some, ", "),
                                           in_scope.size() > kInstead ? ", ..." : ""),
                               path});
    answer.instead = std::move(some);
  }
  if (frame != nullptr)
    answer.evidence.push_back({fmt::format("the code calls {}: line {}   {}", asked.member, frame->line, frame->code), frame->file});
  return true;
}

}  // namespace

WhyAnswer explain_absent_name(const Session& session, std::string_view name, const WhyOptions& options) {
  WhyAnswer answer;
  const NameParts asked = split_name(name);
  const std::span<const GraphPtr> graphs = session.graphs();
  const bool calls = !graphs.empty() && graphs.front()->recorded_calls();
  if (calls) {
    answer.next = "msprobe leaves cheap calls out by default (\"risk_level\": \"ALL\" records them), and those that \"list\" or \"scope\" "
                  "of its config.json do not name; indexing, views and what runs in C++ are never recorded";
  } else if (find_fused(session, asked, options, answer) || find_removed(session, asked, options, answer)) {
    return answer;
  }
  std::set<std::string> names, with_value;
  size_t from_file = 0;
  for (const GraphPtr& graph : session.graphs()) {
    if (!chosen(options, *graph)) continue;
    from_file += graph->from_file() ? 1 : 0;
    for (const Node& node : graph->nodes()) {
      names.insert(node.name);
      if (!is_structural(node.op)) with_value.insert(node.name);
    }
  }
  const std::vector<std::string> all(with_value.begin(), with_value.end());
  answer.kind = WhyKind::kNeverExisted;
  answer.instead = nearest(name, all, 3);
  answer.answer = fmt::format("no graph of this dump has a node '{}'", name);
  if (!answer.instead.empty()) {
    answer.answer += fmt::format("; the nearest are {}", fmt::join(answer.instead, ", "));
  } else if (const auto found = find_node(session.graphs(), name, options.rank, options.graph); !found) {
    // This message knows the parts of names and shows real ones.
    const std::string message = found.status().message();
    if (const size_t tail = message.rfind("; "); tail != std::string::npos) answer.answer += message.substr(tail);
  }
  answer.evidence.push_back(
      {fmt::format("{} names in {} graph{}", names.size(), session.graphs().size(), session.graphs().size() == 1 ? "" : "s"),
       session.info().source});
  if (from_file == 0) answer.evidence.push_back({"there is no graph file: only nodes that wrote a file are known", session.info().source});
  return answer;
}

}  // namespace msdbg
