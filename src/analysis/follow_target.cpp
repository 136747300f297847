#include <fmt/format.h>

#include <algorithm>

#include "analysis/follow.h"

namespace msdbg {
namespace {

bool is_selector(std::string_view text) {
  if (text.find_first_of("@*?=/\"( ") == 0 || text.find_first_of("*?") != std::string_view::npos) return true;
  for (std::string_view prefix : {"op:", "dtype:", "scope:", "stack:", "rank:", "graph:", "not "}) {
    if (text.starts_with(prefix)) return true;
  }
  return false;
}

/// `="NAME"`, for any name.
std::string exactly(std::string_view name) {
  std::string text = "=\"";
  for (char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

/// The user may have written a predicate in place of the tensor.
bool is_predicate(std::string_view word) {
  // A name with dashes, dots or slashes parses as arithmetic, but a real expression contains a comparison.
  const bool compares = word.find_first_of("<>") != std::string_view::npos || word.find("==") != std::string_view::npos;
  const auto when = parse_predicate(word);
  return when.ok() && (compares || !std::holds_alternative<Expression>(when->when));
}

Status with_hint(Status status, std::string_view word) {
  if (!is_predicate(word)) return status;
  return Status(Code::kInvalidArgument,
                fmt::format("'{}' says what to look for (when); a tensor or a selector is expected here, such as conv1.weight or @gradient",
                            printable(word)));
}

}  // namespace

Result<FollowTarget> follow_target(const Session& session, std::string_view text, const IntSet& ranks, std::optional<int> graph) {
  const std::string_view word = trim(text);
  if (word.empty())
    return Status(Code::kInvalidArgument, "which tensor? write NODE, NODE:1, NODE:input:0, or a selector such as @gradient");
  FollowTarget target;
  target.text = std::string(word);
  auto keep = [&](std::vector<NodeRef> nodes) {
    std::erase_if(nodes, [&](const NodeRef& ref) { return !ranks.contains(ref.graph->rank()) || (graph && ref.graph->id() != *graph); });
    target.nodes = std::move(nodes);
  };
  Status no_tensor;
  if (!is_selector(word)) {
    const std::vector<int64_t> steps = session.steps();
    const Result<TensorId> id = resolve_tensor(session, word, steps.empty() ? 0 : steps.front(), {}, graph);
    if (id) {
      std::string on = exactly(session.node(*id).name);
      if (graph) on += fmt::format(" and graph:{}", *graph);
      Result<Selector> selector = Selector::parse(on);
      if (!selector) return selector.status();
      target.on = std::move(*selector);
      target.inputs = id->slot.io == Io::kInput;
      target.outputs = !target.inputs;
      // A bare name means the node's value, which is ambiguous for an operator with several outputs.
      const bool named_slot = word.ends_with(slot_name(id->slot)) || word.ends_with(fmt::format(":{}", id->slot.index));
      if (named_slot) target.slot = id->slot.index;
      keep(target.on.resolve(session.graphs()));
      if (!target.nodes.empty()) return target;
      return Status(Code::kNotFound, fmt::format("{} is not in the requested ranks ({})", word, ranks.text()));
    }
    no_tensor = id.status();
  }
  Result<Selector> selector = Selector::parse(word);
  if (!selector) return with_hint(no_tensor.ok() ? selector.status() : no_tensor, word);
  Result<std::vector<NodeRef>> nodes = resolve_or_explain(*selector, session.graphs());
  if (!nodes) return with_hint(no_tensor.ok() ? nodes.status() : no_tensor, word);
  target.on = std::move(*selector);
  if (graph) {
    Result<Selector> narrowed = Selector::parse(fmt::format("({}) and graph:{}", target.on.text(), *graph));
    if (!narrowed) return narrowed.status();
    target.on = std::move(*narrowed);
  }
  keep(std::move(*nodes));
  if (target.nodes.empty()) {
    return Status(Code::kNotFound,
                  fmt::format("'{}' matches no node of these ranks{}", word, graph ? fmt::format(" in graph {}", *graph) : ""));
  }
  return target;
}

Watchpoint watch_predicate(const Predicate& predicate) {
  Watchpoint watch;
  watch.id = 1;
  watch.optional = true;
  if (const auto* which = std::get_if<Predicate::Builtin>(&predicate.when)) {
    watch.rule = *which == Predicate::Builtin::kNan ? "nan" : *which == Predicate::Builtin::kInf ? "inf" : "tensor_overflow";
    watch.condition = make_condition(watch.rule, {}).value();
  } else if (const auto* condition = std::get_if<Condition>(&predicate.when)) {
    watch.rule = condition->spec->id;
    watch.condition = *condition;
  } else if (const auto* expression = std::get_if<Expression>(&predicate.when)) {
    watch.rule = expression->text();
    watch.expression = *expression;
  } else {
    watch.rule = predicate.text;
    watch.script = [&function = std::get<Predicate::Function>(predicate.when)](const CheckedTensor& tensor) {
      ScriptVerdict verdict;
      const std::optional<bool> holds = function(tensor);
      verdict.verdict = !holds ? Verdict::kNotChecked : *holds ? Verdict::kHit : Verdict::kClean;
      if (!holds) verdict.reason = "the predicate returned no answer";
      return verdict;
    };
  }
  if (watch.condition) watch.severity = watch.condition->spec->severity;
  return watch;
}

std::vector<TensorId> target_tensors(Session& session, const FollowTarget& target, const IntSet& steps, const IntSet& ranks) {
  TensorQuery query;
  query.steps = steps;
  query.ranks = ranks;
  query.nodes = &target.nodes;
  query.inputs = target.inputs;
  query.outputs = target.outputs;
  query.slot = target.slot;
  return session.tensors(query);
}

CheckOptions check_options(const FollowOptions& options) {
  CheckOptions made;
  made.steps = options.steps;
  made.ranks = options.ranks;
  made.semantics = options.semantics;
  made.mem_limit_bytes = options.mem_limit_bytes;
  made.threads = options.threads;
  made.progress = options.progress;
  return made;
}

}  // namespace msdbg
