// What a difference between replicas is called.
#include <fmt/format.h>

#include <algorithm>

#include "msdbg/replicas.h"

namespace msdbg {

std::string_view replica_kind_name(ReplicaKind kind) {
  switch (kind) {
    case ReplicaKind::kParameter:
      return "parameter";
    case ReplicaKind::kOptimizerState:
      return "optimizer_state";
    case ReplicaKind::kCollectiveOutput:
      return "collective_output";
    case ReplicaKind::kUpdate:
      return "update";
    case ReplicaKind::kComputed:
      return "computed";
  }
  return "computed";
}

std::string_view replica_cause_name(ReplicaCause cause) {
  switch (cause) {
    case ReplicaCause::kValue:
      return "value";
    case ReplicaCause::kOperator:
      return "operator";
    case ReplicaCause::kUnknown:
      return "unknown";
    case ReplicaCause::kCollective:
      return "collective";
    case ReplicaCause::kSetting:
      return "setting";
    case ReplicaCause::kNoUpdate:
      return "no_update";
    case ReplicaCause::kStep:
      return "step";
    case ReplicaCause::kStepAhead:
      return "step_ahead";
    case ReplicaCause::kUnreduced:
      return "unreduced";
    case ReplicaCause::kApart:
      return "apart";
    case ReplicaCause::kGroup:
      return "group";
    case ReplicaCause::kCalls:
      return "calls";
  }
  return "unknown";
}

std::vector<int> all_ranks(const ReplicaDifference& difference) {
  std::vector<int> all = difference.others;
  all.insert(all.end(), difference.odd.begin(), difference.odd.end());
  std::ranges::sort(all);
  return all;
}

std::string difference_sentence(const ReplicaDifference& difference) {
  const std::string odd = ranks_text(difference.odd), others = ranks_text(difference.others);
  if (difference.shifted()) {
    const bool one = difference.odd.size() == 1, ahead = difference.cause == ReplicaCause::kStepAhead;
    return fmt::format("{} {} one step {} {}: {} what {} {}", odd, one ? "is" : "are", ahead ? "ahead of" : "behind", others,
                       one ? "it holds" : "they hold", difference.others.size() == 1 ? "that one" : "these",
                       !ahead ? "held in the step before" : difference.others.size() == 1 ? "holds in the next step" : "hold in the next step");
  }
  if (difference.drifts()) {
    const size_t more = difference.also.size();
    const std::string also = more == 0 ? "" : fmt::format("; {} more parameter{} like it", more, more == 1 ? "" : "s");
    const bool all = difference.cause == ReplicaCause::kApart;
    if (difference.cause == ReplicaCause::kGroup) {
      return fmt::format("its gradient passes AllReduce of {}, unlike most others; {} hold different parts of it{}", difference.arguments,
                         ranks_text(all_ranks(difference)), also);
    }
    return fmt::format("each of {} trains it alone: {}{}", ranks_text(all_ranks(difference)),
                       difference.staying > 0 ? fmt::format("{} other weights stay equal", difference.staying)
                       : all                  ? "no exchange between them is recorded"
                                              : "no collective reduces its gradient, although others are reduced",
                       also);
  }
  if (difference.of_calls()) {
    const std::string undecided = difference.decided ? "" : "; nobody can tell which is wrong";
    if (difference.cause == ReplicaCause::kNoUpdate) return fmt::format("unlike {}, {} ran no optimizer{}", others, odd, undecided);
    const std::string_view what = difference.cause == ReplicaCause::kCalls ? "" : "the optimizer with ";
    return fmt::format("unlike {}, {} ran {}{}{}", others, odd, what, difference.arguments, undecided);
  }
  std::string out = difference.decided ? fmt::format("{} {} from {}", odd, difference.odd.size() == 1 ? "differs" : "differ", others)
                                       : fmt::format("{} and {} differ", others, odd);
  std::string end;
  if (!difference.arguments.empty()) {
    end = difference.cause == ReplicaCause::kOperator ? "; it took "
          : difference.in_front                       ? "; a call in front of the optimizer took "
                                                      : "; the optimizer was called with ";
    end += difference.arguments;
  }
  if (const std::string move = move_text(difference); !move.empty()) end += "; " + move;
  if (!difference.decided) end += "; nobody can tell which is wrong";
  if (!difference.problem.empty()) return fmt::format("{}: {}{}", out, difference.problem, end);
  out += fmt::format(" in {} of {} element{}", difference.elements, difference.of, difference.of == 1 ? "" : "s");
  if (!difference.first.empty()) {
    const DifferentElement& first = difference.first.front();
    out += fmt::format(": {}{}", first.at.empty() ? "" : shape_text(first.at) + " is ", values_text(difference, first));
  }
  if (difference.single_flip) out += fmt::format(", a single flipped bit ({})", difference.bits.front());
  if (const size_t more = difference.also.size(); more > 0) {
    out += fmt::format("; {} more {}{} as much", more, difference.noun(), more == 1 ? " differs" : "s differ");
  }
  return out + end;
}

std::string move_text(const ReplicaDifference& difference) {
  if (!difference.moved && !difference.own_way && !difference.held && !difference.alone) return "";
  const std::string odd = ranks_text(difference.odd), others = ranks_text(difference.others);
  const std::string_view what = difference.also.empty() ? "it" : "them";
  const int64_t since = difference.seen.step - 1;
  const bool one = difference.odd.size() == 1;
  if (difference.held) {
    return fmt::format("{} {} {} as {} in step {}: {} loaded an older checkpoint", odd, one ? "holds" : "hold", what,
                       difference.also.empty() ? "it was" : "they were", *difference.held, one ? "it" : "they");
  }
  if (difference.alone) return fmt::format("{} alone moved {} since step {}", odd, what, since);
  if (difference.own_way) {
    return fmt::format("{} moved {} in another direction since step {} than {}: {} took other gradients", odd, what, since, others,
                       one ? "it" : "they");
  }
  if (*difference.moved == 0) return fmt::format("unlike {}, {} did not move {} since step {}: an update is missing", others, odd, what, since);
  return fmt::format("{} moved {} {} times as far since step {} as {}: another learning rate", odd, what,
                     format_short(*difference.moved, 4), since, others);
}

std::string values_text(const ReplicaDifference& difference, const DifferentElement& element) {
  const std::string actual = format_short(element.actual, 9), expected = format_short(element.expected, 9);
  if (difference.decided) return fmt::format("{} instead of {}", actual, expected);
  return fmt::format("{} on {} and {} on {}", expected, ranks_text(difference.others), actual, ranks_text(difference.odd));
}

}  // namespace msdbg
