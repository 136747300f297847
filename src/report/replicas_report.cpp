// Which rank differs from the others, since when, and in which bits.
#include "msdbg/replicas_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/follow_text.h"
#include "report/markup.h"
#include "report/table.h"

namespace msdbg {
namespace {

constexpr CsvColumn kReplicasColumns[] = {{"step", "step"}, {"rank", "rank"}, {"graph", "graph"}, {"graph_id", "graph_id"}, {"node", "node"},
                                  {"slot", "slot"}, {"cause", "cause"}, {"odd_ranks", "odd_ranks"}, {"other_ranks", "other_ranks"},
                                  {"decided", "decided"}, {"assumed", "assumed"}, {"elements", "elements"}, {"of", "of"},
                                  {"first", "first"}, {"bits", "bits"}, {"single_flip", "single_flip"}, {"steps", "steps"},
                                  {"first_operator", "first_operator"}, {"source", "source.file"}, {"line", "source.line"},
                                  {"problem", "problem"}, {"text", "text"}};
constexpr CsvColumn kReplicasMarkdownColumns[] = {{"step", "step"}, {"rank", "rank"}, {"value", "node"}, {"first operator", "first_operator"},
                                          {"what", "text"}, {"source", "source.file"}, {"line", "source.line"}};
constexpr size_t kNamed = 3;

std::string kind_words(ReplicaKind kind, uint64_t n) {
  std::string word;
  switch (kind) {
    case ReplicaKind::kParameter:
      word = "parameter";
      break;
    case ReplicaKind::kOptimizerState:
      word = "optimizer state";
      break;
    case ReplicaKind::kCollectiveOutput:
      word = "output of collectives";
      return n == 1 ? word : "outputs of collectives";
    case ReplicaKind::kUpdate:
      word = "update";
      break;
    case ReplicaKind::kComputed:
      word = "value computed from them";
      return n == 1 ? word : "values computed from them";
  }
  return n == 1 ? word : word + "s";
}

/// The name of the value without its rank.
std::string value_name(const Session& session, const TensorId& id, const ReportStyle& style) {
  const std::string& name = session.node(id).name;
  const std::string suffix = session.node(id).kind == NodeKind::kOperator ? slot_suffix(id.slot) : "";
  return (style.full_names() && style.wide ? printable(name) : brief_name(session, name)) + suffix;
}

std::string bit_words(const ReplicaDifference& difference, DType dtype) {
  const int sign = static_cast<int>(item_size(dtype)) * 8 - 1;
  const int exponent = dtype == DType::kFloat16 ? 10 : dtype == DType::kBFloat16 ? 7 : dtype == DType::kFloat32 ? 23 : 52;
  const std::vector<int64_t> bits(difference.bits.begin(), difference.bits.end());
  std::string out = difference.single_flip ? fmt::format("a single flipped bit: {}", bits.front())
                                           : fmt::format("{}{}", bits.size() == 1 ? "always " : "", numbers_text(bits));
  if (bits.size() == 1 && is_float(dtype)) {
    out += bits.front() == sign ? ", the sign" : bits.front() >= exponent ? ", in the exponent" : ", in the mantissa";
  }
  return out;
}

std::string place_text(const Session& session, const ReplicaDifference& difference, const ReportStyle& style) {
  const TensorId& seen = difference.seen;
  const Node& node = session.node(seen);
  if (node.kind != NodeKind::kOperator) {
    if (!difference.updated) return fmt::format("the parameter, step {}", seen.step);
    return fmt::format("the parameter as step {} left it; no operator shows it before", seen.step);
  }
  const std::string source = source_place(node, style.wide);
  return fmt::format("{}{}, step {}{}", brief_name(session, node.name), ":" + slot_name(seen.slot), seen.step,
                     source.empty() ? "" : "   " + source);
}

/// The first few of `count` names.
template <typename Name>
std::string listed(size_t count, const ReportStyle& style, Name name) {
  const size_t named = style.wide ? count : std::min(count, kNamed);
  std::string out;
  for (size_t i = 0; i < named; ++i) out += (i == 0 ? "" : ", ") + name(i);
  return named < count ? out + fmt::format(" and {} more", count - named) : out;
}

std::string values_list(const Session& session, const std::vector<TensorId>& values, const ReportStyle& style) {
  return listed(values.size(), style, [&](size_t i) { return value_name(session, values[i], style); });
}

std::string names_list(const std::vector<std::string>& names, const ReportStyle& style) {
  return listed(names.size(), style, [&](size_t i) { return printable(names[i]); });
}

/// The elements that are shown differ by less than a tenth, taken together.
bool is_near(const ReplicaDifference& difference) {
  double apart = 0, size = 0;
  for (const DifferentElement& each : difference.first) {
    apart += std::abs(each.actual - each.expected);
    size += std::max(std::abs(each.actual), std::abs(each.expected));
  }
  return apart < 0.1 * size;
}

/// What else may have brought it.
std::string note_text(const ReplicaDifference& difference, const ReportStyle& style) {
  const std::vector<std::string>& names = difference.not_seen;
  if (names.empty()) return "not all inputs of the operator were dumped: the difference may have come in with one";
  return fmt::format("the difference may have come in with {}: no file shows {} before the update", names_list(names, style),
                     names.size() == 1 ? "it" : "them");
}

std::string difference_text(Session const& session, const ReplicaDifference& difference, const ReportStyle& style) {
  std::string out = painted(replica_headline(session, difference, style), Paint::kError, style.colour) + "\n";
  const auto line = [&](std::string_view title, const std::string& text) { out += fmt::format("  {:<13}{}\n", title, text); };
  line("first seen", place_text(session, difference, style));
  const std::string_view plural = difference.others.size() == 1 ? "" : "s";
  const std::string_view doubt = difference.assumed ? "; that they share it is assumed" : "";
  const bool drifts = difference.drifts();
  if (drifts) line("ranks", ranks_numbers(all_ranks(difference)) + std::string(doubt));
  else line("others", fmt::format("rank{} {}{}", plural, ranks_numbers(difference.others), doubt));
  if (!difference.problem.empty()) line("problem", lines_text(difference.problem));
  const bool shifted = difference.shifted();
  const bool ahead = difference.cause == ReplicaCause::kStepAhead;
  if (shifted) line("note", fmt::format("in each step it holds what the others {}", ahead ? "hold in the next one" : "held in the step before"));
  if (difference.elements > 0 && !shifted) line("elements", fmt::format("{} of {}", difference.elements, difference.of));
  const size_t shown = shifted || drifts ? 0 : std::min(difference.first.size(), style.wide ? difference.first.size() : kNamed);
  for (size_t i = 0; i < shown; ++i) {
    const DifferentElement& element = difference.first[i];
    line("", fmt::format("{}{}", element.at.empty() ? "" : shape_text(element.at) + "  ", values_text(difference, element)));
  }
  const bool chosen = difference.cause == ReplicaCause::kSetting && !difference.single_flip;
  // Which bits differ in a NaN means nothing, unless a single one flipped.
  const bool made_nan = !difference.single_flip && !difference.first.empty() && std::isnan(difference.first.front().actual);
  if (!difference.bits.empty() && difference.bits.size() <= 16 && !chosen && !shifted && !drifts && !made_nan) {
    const Node& node = session.node(difference.tensor);
    const uint32_t slot = difference.tensor.slot.index;
    const DType dtype = slot < node.outputs.size() ? node.outputs[slot].dtype : DType::kUnknown;
    if (is_float(dtype) || difference.of > 1) line("bits", bit_words(difference, dtype));
  }
  if (difference.cause == ReplicaCause::kUnknown) line("note", note_text(difference, style));
  if (!difference.also.empty()) {
    line("also", values_list(session, difference.also, style));
    const bool weights = difference.cause != ReplicaCause::kCollective, unknown = difference.cause == ReplicaCause::kUnknown;
    if (!unknown && difference.arguments.empty() && difference.elements > 0 && !drifts && move_text(difference).empty())
      line("note", fmt::format("in most of their elements at once{}",
                               !weights             ? ": the rank may be in another step"
                               : is_near(difference) ? ", by little: other gradients, or another checkpoint"
                                                     : ": other weights, as from another seed or checkpoint"));
  }
  const std::string move = shifted || drifts ? "" : move_text(difference);
  if (!move.empty()) line("note", move);
  if (difference.cause == ReplicaCause::kOperator && !difference.not_seen.empty() && difference.arguments.empty()) {
    line("note", fmt::format("constants that it takes may differ, their values are not in the dump: {}", names_list(difference.not_seen, style)));
  }
  if (difference.called && difference.cause != ReplicaCause::kOperator && !difference.of_calls())
    line(difference.in_front ? "call" : "written by",
         fmt::format("{}, step {}, {}", value_name(session, *difference.called, style), difference.called->step, difference.arguments));
  if (!difference.reached.empty()) line(shifted ? "also" : "reached", values_list(session, difference.reached, style));
  line("seen in", fmt::format("step{} {}", difference.steps.size() == 1 ? "" : "s", numbers_text(difference.steps)));
  return out;
}

std::string sets_text(const ReplicasResult& result, const ReportStyle& style) {
  if (result.sets.empty()) return "";
  Table table({{"ranks"},
               {"what"},
               {.title = "number", .align = Align::kRight},
               {.title = "different", .align = Align::kRight},
               {.title = "why they must be equal", .fit = Fit::kText}});
  for (const ReplicaSet& set : result.sets) {
    table.add({ranks_cell(set.ranks), kind_words(set.what, set.tensors), std::to_string(set.tensors),
               Table::Cell(std::to_string(set.different), set.different > 0 ? Paint::kError : Paint::kNone),
               printable(set.reason) + (set.assumed ? " (assumed)" : "")});
  }
  return table.text(style);
}

std::string left_out_text(const ReplicasResult& result) {
  std::string out;
  for (const NotReplicated& entry : result.not_replicated) {
    std::string names;
    for (const std::string& name : entry.examples) names += (names.empty() ? "" : ", ") + printable(name);
    out += fmt::format("not compared: {} ({}{})\n", printable(entry.reason), names,
                       entry.tensors > entry.examples.size() ? fmt::format(" and {} more", entry.tensors - entry.examples.size()) : "");
  }
  return out;
}

std::string verdict_line(const ReplicasResult& result) {
  const std::string where = fmt::format("ranks {}, step{} {}", ranks_numbers(result.ranks), result.steps.size() == 1 ? "" : "s",
                                        numbers_text(result.steps));
  if (!result.nothing.empty()) return fmt::format("nothing was compared: {}\n", result.nothing);
  const bool weights = std::ranges::any_of(result.sets, [](const ReplicaSet& set) { return set.what == ReplicaKind::kParameter; });
  const std::string compared =
      fmt::format("{}{} compared on {}", counted(result.coverage.checked, "tensor"), weights ? "" : ", no weight among them,", where);
  if (result.interrupted) return fmt::format("interrupted: {}\n", compared);
  if (!result.differences.empty()) {
    return fmt::format("{} {}; {}\n", result.differences.size(), result.differences.size() == 1 ? "difference" : "differences", compared);
  }
  if (result.by_statistics > 0) {
    const bool all = result.by_statistics == result.coverage.checked;
    const std::string some = all ? "" : fmt::format(", {} of them by statistics", result.by_statistics);
    return fmt::format("equal as far as statistics tell: {}{}\n", compared, some);
  }
  if (result.by_checksum > 0) return fmt::format("equal: {}, by {}\n", compared, result.by_checksum == result.coverage.checked
                                                                            ? "checksums" : "elements and checksums");
  return fmt::format("equal: {}, bit for bit\n", compared);
}

std::string hints(const Session& session, const ReplicasResult& result, const ReportStyle& style) {
  if (result.differences.empty() || session.can_step()) return "";
  const TensorId& id = result.differences.front().seen;
  Hint hint{"show", {fmt::format("{}:{}", brief_name(session, session.node(id).name), slot_name(id.slot))}};
  follow::add_place(session, id, &hint.words);
  return fmt::format("next: {}\n", hint_text(session, hint, style.place));
}

}  // namespace

std::string replica_headline(const Session& session, const ReplicaDifference& difference, const ReportStyle& style) {
  const std::string name = value_name(session, difference.tensor, style);
  const int64_t step = difference.tensor.step;
  const std::string odd = ranks_text(difference.odd);
  if (difference.shifted()) {
    const std::string_view where = difference.cause == ReplicaCause::kStepAhead ? "ahead of" : "behind";
    const std::string others = difference.decided ? "the other replicas" : ranks_text(difference.others);
    return fmt::format("{} {} one step {} {} from step {} on", odd, difference.odd.size() == 1 ? "is" : "are", where, others, step);
  }
  if (difference.drifts()) {
    const size_t more = difference.also.size();
    const std::string what = more == 0 ? name + " drifts" : fmt::format("{} and {} more parameter{} drift", name, more, more == 1 ? "" : "s");
    if (difference.staying > 0)
      return fmt::format("{} apart from step {} on, and {} other weights stay equal on {}", what, step, difference.staying,
                         ranks_text(all_ranks(difference)));
    if (difference.cause == ReplicaCause::kGroup) {
      const std::string of = more == 0 ? "gradient of " + name : fmt::format("gradients of {} and {} more parameters", name, more);
      return fmt::format("the {} pass{} AllReduce of {}, unlike most others; {} hold different parts of {}", of, more == 0 ? "es" : "",
                         difference.arguments, ranks_text(all_ranks(difference)), more == 0 ? "it" : "them");
    }
    if (difference.cause == ReplicaCause::kApart)
      return fmt::format("{} apart from step {} on: no exchange between {} is recorded", what, step, ranks_text(all_ranks(difference)));
    return fmt::format("{} apart from step {} on: no collective reduces {} gradient{}, although others are reduced", what, step,
                       more == 0 ? "its" : "their", more == 0 ? "" : "s");
  }
  if (difference.of_calls()) {
    const std::string undecided = difference.decided ? "" : "; without a majority nobody can tell which is wrong";
    if (difference.cause == ReplicaCause::kNoUpdate)
      return fmt::format("{} ran no optimizer in step {}, unlike {}{}", odd, step, ranks_text(difference.others), undecided);
    const std::string_view what = difference.cause == ReplicaCause::kCalls ? "" : "the optimizer with ";
    const bool once = difference.cause == ReplicaCause::kCalls && difference.steps.size() == 1;
    return fmt::format("{} ran {}{} {} step {}{}{}", odd, what, difference.arguments, once ? "in" : "from", step, once ? "" : " on",
                       undecided);
  }
  if (!difference.decided) {
    const size_t more = difference.also.size();
    const std::string what =
        more == 0 ? name + " differs" : fmt::format("{} and {} more {}{} differ", name, more, difference.noun(), more == 1 ? "" : "s");
    return fmt::format("{} between ranks {} and {} from step {} on; without a majority nobody can tell which is wrong", what,
                       ranks_numbers(difference.others), ranks_numbers(difference.odd), step);
  }
  switch (difference.cause) {
    case ReplicaCause::kSetting:
      return fmt::format("{} has another {} from step {} on", odd, name, step);
    case ReplicaCause::kOperator:
      if (!difference.arguments.empty())
        return fmt::format("{} computed another {} in step {}, with {}", odd, name, step, difference.arguments);
      return fmt::format("{} computed another {} in step {}, from inputs {} on all ranks", odd, name, step,
                         difference.problem.empty() ? "equal" : "that are equal, as far as the dump tells,");
    case ReplicaCause::kCollective:
      if (const size_t more = difference.also.size(); more > 0)
        return fmt::format("{} got other results of {} and {} more collective{} in step {}", odd, name, more, more == 1 ? "" : "s", step);
      return fmt::format("{} got another result of {} in step {}", odd, name, step);
    default:
      if (const size_t more = difference.also.size(); more > 0)
        return fmt::format("{} and {} more {}{} of {} differ from the other replicas from step {} on", name, more, difference.noun(),
                           more == 1 ? "" : "s", odd, step);
      return fmt::format("{} of {} differs from the other replicas from step {} on", name, odd, step);
  }
}

std::string replicas_report(const Session& session, const ReplicasResult& result, const ReportStyle& style) {
  if (style.format == Format::kJson) return json_text(replicas_answer(session, result));
  if (style.format == Format::kJsonl) return json_lines(replicas_answer(session, result), "differences");
  if (style.format == Format::kCsv) return csv_text(kReplicasColumns, replicas_answer(session, result)["differences"]);
  const std::string coverage = not_checked_text(session, result.not_checked, result.coverage, style);
  if (style.format == Format::kMarkdown) {
    const std::string rows =
        result.differences.empty() ? "" : markdown_table(kReplicasMarkdownColumns, replicas_answer(session, result)["differences"]) + "\n";
    const std::string rest = left_out_text(result) + coverage;
    return fmt::format("## {}\n{}{}", verdict_line(result), rows, rest.empty() ? "" : rest);
  }
  std::string out;
  for (const ReplicaDifference& difference : result.differences) out += difference_text(session, difference, style) + "\n";
  out += sets_text(result, style) + left_out_text(result) + coverage + verdict_line(result) + hints(session, result, style);
  return fitted(std::move(out), style);
}

}  // namespace msdbg
