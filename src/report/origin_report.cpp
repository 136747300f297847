// The origin of each step, as text.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "msdbg/answers.h"
#include "msdbg/report.h"
#include "msdbg/unfinished.h"
#include "report/origin_rest.h"
#include "report/origin_words.h"
#include "report/overflow_report.h"
#include "report/table.h"

namespace msdbg {

namespace {

constexpr size_t kFurtherOrigins = 6, kRepeatedSteps = 10;
constexpr size_t kLongChain = 9, kChainHead = 4, kChainTail = 3;

std::string grown_text(const std::vector<Grown>& grown, const std::string& name, const std::string& seen_by) {
  const Grown& most = grown.front();
  const std::string rank = most.one_rank ? fmt::format(" on rank {}", most.parameter.rank) : "";
  std::string out = fmt::format("parameter {}{} is up to {:.3g} now, and was up to {:.3g} after step {}: it changed between the steps, outside of "
                                "the graph",
                                name, rank, most.largest, most.before, most.parameter.step);
  if (most.seen_by) {
    out = fmt::format("parameter {}{} was up to {:.3g} or more when the step began, as {} shows, and up to {:.3g} after step {}: it changed between "
                      "the steps, outside of the graph",
                      name, rank, most.largest, seen_by, most.before, most.parameter.step);
  } else if (most.at_begin) {
    out = fmt::format("parameter {}{} was up to {:.3g} when step {} began, and up to {:.3g} when step {} began", name, rank, most.before,
                      most.parameter.step, most.largest, *most.since);
  } else if (most.since) {
    out = fmt::format("parameter {}{} was up to {:.3g} after step {}, and up to {:.3g} after step {}", name, rank, most.before,
                      most.parameter.step, most.largest, *most.since);
  }
  out = origin_line("grown", out);
  if (grown.size() > 1) out += origin_more(fmt::format("and {} more", counted(grown.size() - 1, "parameter")));
  if (most.at_begin)
    out += origin_more(fmt::format("the update in step {} did that, or the program before or after it", *most.since - 1));
  else if (most.since)
    out += origin_more(fmt::format("the update in step {} did that, or the program right before or after it", *most.since));
  return out;
}

class OriginText {
 public:
  OriginText(Session& session, const OriginResult& result, const ReportStyle& style)
      : session_(session), result_(result), style_(style) {}

  std::string text() {
    std::string out;
    for (const StepOrigins& step : result_.steps) {
      if (!step.origins.empty()) out += step_text(step);
      rows_ += step.origins.size();
    }
    out += flush_skipped();
    if (!out.empty()) out += "\n";
    out += overwritten_text(session_, result_, style_);
    if (const std::string overflows = overflow_table(session_, result_.overflows, style_); !overflows.empty()) out += overflows + "\n";
    const std::string unknown =
        not_checked_text(session_, result_.not_checked, result_.coverage, style_) + lacking_text(session_, result_) +
        unfinished_text();
    out += unknown;
    if (result_.steps.empty())
      out += put_in_text(session_, result_, style_) + healthy_line(session_, result_);
    else if (!unknown.empty())
      out += "\n";
    if (!result_.steps.empty()) out += put_in_text(session_, result_, style_);
    if (result_.interrupted) out += "interrupted: the steps above are complete, later ones were not checked\n";
    if (!result_.steps.empty()) out += next_text(session_, result_, style_);
    return out;
  }

 private:
  std::string unfinished_text() const {
    std::string out;
    for (const std::string& text : unfinished_texts(session_, result_.asked_steps, result_.asked_ranks))
      out += fmt::format("not checked: {}\n", text);
    return out;
  }

  std::string name(const TensorId& id) const { return origin_name(session_, id, style_); }

  std::string node_name(const TensorId& id) const {
    const Node& node = session_.node(id);
    const std::string shown = style_.wide ? printable(node.name) : brief_name(session_, node.name);
    return node.kind == NodeKind::kParameter ? "parameter " + shown : shown;
  }

  /// `#3 `: the row of the i-th origin of the current step.
  std::string number(size_t i) const { return style_.numbered ? fmt::format("#{} ", rows_ + i + 1) : ""; }

  std::string step_text(const StepOrigins& step) {
    const Origin& first = step.origins.front();
    const std::pair<int, int> key{step.rank, step.graph};
    const auto before = last_.find(key);
    const bool again =
        before != last_.end() && before->second.node == first.tensor.node && before->second.slot == first.tensor.slot;
    last_[key] = first.tensor;
    if (again && !style_.wide) return again_text(step);
    std::string out = flush_skipped();
    repeated_ = 0;
    if (any_) out += "\n";
    any_ = true;
    const Graph* graph = session_.graph(step.rank, step.graph);
    const std::string graph_name = graph ? printable(graph->name()) : "";
    out += fmt::format("step {}  {}{}{}\n", step.step, ranks_text(step.ranks), graph_name.empty() ? "" : "  ", graph_name);
    out += first_text(first, step);
    out += further_text(step);
    out += spread_text(first, step);
    out += reached_text(step);
    for (const TensorId& loss : step.losses) out += loss_text(loss);
    return out;
  }

  std::string again_text(const StepOrigins& step) {
    if (++repeated_ > kRepeatedSteps) {
      ++skipped_;
      return "";
    }
    const Origin& first = step.origins.front();
    std::string counts = nonfinite_text(first.stats);
    // "88 of 192 -Inf" reads better with a verb.
    if (const size_t space = counts.find(' ', counts.find("of ") + 3); !counts.empty() && space != std::string::npos) {
      counts.insert(space, " are");
    }
    std::string out = fmt::format("{}step {}  ", repeated_ == 1 ? "\n" : "", step.step);
    if (session_.ranks().size() > 1) out += ranks_text(step.ranks) + "  ";
    if (session_.graphs().size() > session_.ranks().size()) out += fmt::format("graph {}  ", step.graph);
    out += number(0) + "the same node again";
    if (!counts.empty()) out += fmt::format(" ({})", counts);
    for (size_t i = 1; i < step.origins.size() && i <= kFurtherOrigins; ++i)
      out += "; " + number(i) + further_phrase(step.origins[i]);
    if (step.origins.size() > kFurtherOrigins + 1)
      out += fmt::format("; {} more", step.origins.size() - kFurtherOrigins - 1);
    return out + fmt::format("; {}\n", counted(step.bad_tensors, "tensor"));
  }

  std::string flush_skipped() {
    if (skipped_ == 0) return "";
    std::string out = fmt::format("... and in {} (each one: --wide)\n", counted(skipped_, "further step"));
    skipped_ = 0;
    return out;
  }

  std::string first_text(const Origin& origin, const StepOrigins& step) {
    const Node& node = session_.node(origin.tensor);
    const bool parameter = node.kind == NodeKind::kParameter;
    const std::string before = number(0) + (parameter ? "parameter " : "");
    std::string full = before + name_within(session_, origin.tensor, parameter ? "" : ":" + slot_name(origin.tensor.slot),
                                            kOriginIndent.size() + before.size(), style_);
    if (origin.tensor.execution > 0 || session_.executions(step.rank, step.graph, step.step, origin.tensor.node) > 1) {
      full += fmt::format("  execution {}", origin.tensor.execution);
    }
    std::string out = origin_line(
        "first bad", painted(full, Paint::kError, style_.colour) +
                         fmt::format("        {}{}", dtype_name(origin.info.dtype), shape_text(origin.info.shape)));
    out += origin_more(broken_text(origin));
    if (!asks_for_bad_values(result_)) out += origin_more("satisfies: " + printable(result_.predicate));
    if (origin.kind == OriginKind::kParameter) out += origin_more("it was so already when the step began");
    if (origin.bad_part) {
      out += origin_more(fmt::format("in the part that rank {} holds, as {} shows; the parts of the other ranks were good", origin.bad_part->rank,
                                     name(*origin.bad_part)));
    }
    if (origin.kind == OriginKind::kParameter && origin.sound_before && !origin.update)
      out += left_good(*origin.sound_before);
    if (origin.kind == OriginKind::kInput || origin.kind == OriginKind::kUnrecorded) out += outside_text(origin);
    if (!origin.put_in.empty()) out += origin_more("the call was told to write it: " + printable(origin.put_in));
    if (origin.update)
      out += origin_line("update", update_text(origin));
    if (!origin.certain && origin.kind == OriginKind::kOperator) out += uncertain_text(origin);
    if (!origin.good_on.empty())
      out += origin_more(fmt::format("{} got a good result of the same call", ::msdbg::ranks_text(origin.good_on)));
    if (const std::string source = source_text(node); !source.empty()) out += origin_line("source", source);
    if (!origin.grown.empty()) {
      const Grown& most = origin.grown.front();
      out += grown_text(origin.grown, name(most.parameter), most.seen_by ? name(*most.seen_by) : "");
    }
    bool titled = false;
    for (const OriginInput& input : origin.inputs) {
      if (input.state == InputState::kGood && !worth_showing(input)) continue;
      // All that is known of it is above: why it is unknown.
      if (input.state == InputState::kUnknown && input.producer.node == kNoNode && input.producer.name.empty()) continue;
      const std::string line = input_line(origin, input);
      out += titled ? origin_more(line) : origin_line("inputs", line);
      titled = true;
    }
    return out;
  }

  /// The place in the program, and what is there.
  static std::string source_text(const Node& node) {
    const std::string source = source_place(node, true);
    if (source.empty() || user_frame(node)->code.empty()) return source;
    return fmt::format("{}   {}", source, printable(user_frame(node)->code));
  }

  /// A fused update returns nothing: what it took broke the parameter.
  std::string update_text(const Origin& origin) const {
    return fmt::format("{}{} {}", name(*origin.update), update_place(origin),
                       went_in(session_, *origin.update) ? "went into it" : "wrote it");
  }

  static std::string left_good(const TensorId& before) {
    return origin_more(fmt::format("step {} left it good: it changed between the steps, outside of the graph", before.step));
  }

  /// Where a bad input came from, if no call of the graph made it.
  std::string outside_text(const Origin& origin) const {
    const Graph* const graph = session_.graph(origin.tensor.rank, origin.tensor.graph);
    if (graph == nullptr || !graph->recorded_calls() || origin.tensor.slot.io != Io::kInput)
      return origin_more("it came into the step like this") + reader_text(graph, origin.tensor);
    std::string out;
    if (origin.part_of) {
      out = origin_more(fmt::format("it is this rank's part of {}, and was so when the step began", name(*origin.part_of)));
      return origin.sound_before ? out + left_good(*origin.sound_before) : out;
    }
    if (origin.update) {
      const bool state = session_.node(origin.tensor).role == CallRole::kOptimizer;
      return origin_more(fmt::format("{} was so already when the step began", state ? "the optimizer's state" : "this weight"));
    }
    if (origin.kind == OriginKind::kUnrecorded) {
      out = origin_more("no recorded call made it: a call that was not recorded did, or it is a buffer of the module");
      out += origin_line("between", fmt::format("here and {}, which is sound", name(*origin.sound_before)));
      return out;
    }
    out = origin_more("no recorded call made it: it is data, a parameter, or the work of a call that was not recorded");
    if (origin.sound_before)
      out += origin_line("sound", name(*origin.sound_before) + " was the last call before it with sound values");
    return out;
  }

  std::string reader_text(const Graph* graph, const TensorId& taken) const {
    if (graph == nullptr || taken.slot.io == Io::kInput) return "";
    const Node* const reader = first_reader(*graph, taken.node);
    if (reader == nullptr) return "";
    const std::string shown = style_.wide ? printable(reader->name) : brief_name(session_, reader->name);
    return origin_line("read by", fmt::format("{}   {}", shown, source_text(*reader)));
  }

  std::string uncertain_text(const Origin& origin) const {
    std::string out;
    if (const std::string reason = unseen_ranks(session_, origin); !reason.empty()) {
      // A sum of good values can overflow; it is never NaN.
      const std::string_view who = origin.stats.nan_count > 0 ? "so another rank brought it" : "so another rank brought it, or the sum overflows";
      return origin_line("certain?", fmt::format("every known input is good, {}: {}", who, printable(reason)));
    }
    for (const OriginInput& input : origin.inputs) {
      if (input.state != InputState::kUnknown) continue;
      const std::string line =
          fmt::format("not later than this node: input:{}{} is unknown ({})", input.slot,
                                           input.rank ? fmt::format(" of rank {}", *input.rank) : "", printable(input.reason));
      out += out.empty() ? origin_line("certain?", line) : origin_more(line);
    }
    if (out.empty()) out = origin_line("certain?", "not later than this node: its inputs do not explain it");
    return out;
  }

  std::string input_line(const Origin& origin, const OriginInput& input) const {
    std::string from = printable(input.producer.name);
    if (input.producer.node != kNoNode) {
      TensorId producer = origin.tensor;
      producer.node = input.producer.node;
      producer.slot = {Io::kOutput, input.producer.slot};
      producer.rank = input.rank.value_or(producer.rank);
      from = session_.node(producer).kind == NodeKind::kParameter ? node_name(producer) : name(producer);
    }
    return fmt::format("input:{}{}  {}   {}", input.slot, input.rank ? fmt::format(" of rank {}", *input.rank) : "", from,
                       input_text(input));
  }

  std::string further_phrase(const Origin& origin) const {
    if (origin.kind == OriginKind::kParameter) {
      const bool nan = origin.stats.nan_count > 0, inf = origin.stats.inf_count() > 0;
      return fmt::format("{} was already {} when the step began", name(origin.tensor),
                         nan   ? "NaN"
                         : inf ? "Inf"
                               : "so");
    }
    if (origin.kind == OriginKind::kInput || origin.kind == OriginKind::kUnrecorded)
      return fmt::format("{} came in with {}", name(origin.tensor), nonfinite_text(origin.stats));
    const std::string bad = nonfinite_text(origin.stats);
    return fmt::format("{} broke on its own{}{}", tensor_name(session_, origin.tensor, style_),
                       bad.empty() ? "" : fmt::format(" ({})", bad),
                       origin.certain ? "" : ", as far as its inputs are known");
  }

  std::string further_text(const StepOrigins& step) const {
    std::string out;
    // What another rank brought came through many collectives.
    const std::string unseen = unseen_ranks(session_, step.origins.front());
    const auto is_further = [&](const Origin& origin) { return style_.wide || unseen.empty() || unseen_ranks(session_, origin) != unseen; };
    std::vector<size_t> further;
    for (size_t i = 1; i < step.origins.size(); ++i) {
      if (is_further(step.origins[i])) further.push_back(i);
    }
    if (const size_t joined = step.origins.size() - 1 - further.size(); joined > 0)
      out += origin_line("also", fmt::format("{} brought it in the same way (all: --wide)", counted(joined, "more collective")));
    const size_t shown = style_.wide ? further.size() : std::min(further.size(), kFurtherOrigins);
    for (size_t k = 0; k < shown; ++k) {
      const size_t i = further[k];
      const Origin& origin = step.origins[i];
      std::string line = number(i) + further_phrase(origin);
      if (origin.update) {
        const std::string_view how = went_in(session_, *origin.update) ? "updated with" : "written by";
        line += fmt::format("; {} {}{}", how, name(*origin.update), update_place(origin));
      }
      if (const std::string source = source_place(session_.node(origin.tensor), true); !source.empty())
        line += "   " + source;
      out += out.empty() ? origin_line("also", line) : origin_more(line);
    }
    if (shown < further.size()) out += origin_more(fmt::format("... {} more (all: --wide)", further.size() - shown));
    return out;
  }

  std::string spread_text(const Origin& origin, const StepOrigins& step) const {
    std::string line = fmt::format("{} in this step", counted(step.bad_tensors, "tensor"));
    if (origin.reached < step.bad_tensors) line += fmt::format(", {} of them from here", origin.reached);
    std::string out = origin_line("spread", line);
    for (const std::vector<ChainLink>& chain : origin.chains) out += origin_more(chain_text(chain));
    if (!step.graphs_behind.empty()) {
      const auto graph_name = [&](int id) { return session_.graph(step.rank, id)->name(); };
      std::vector<std::string> names;
      std::ranges::transform(step.graphs_behind, std::back_inserter(names), graph_name);
      out += origin_more(fmt::format("{} broke later, on what other graphs had handed over (not dumped)", fmt::join(names, ", ")));
    }
    return out;
  }

  /// Where the fault went on other ranks, and what stayed good there.
  std::string reached_text(const StepOrigins& step) const {
    std::vector<RankReached> reached;  // once for each rank, whatever origins of the step reached it
    for (const Origin& origin : step.origins) {
      for (const RankReached& each : origin.ranks_reached) {
        const auto known = std::ranges::find(reached, each.rank, &RankReached::rank);
        if (known == reached.end()) {
          reached.push_back(each);
        } else {
          known->collectives += each.collectives;
          known->tensors += each.tensors;
        }
      }
    }
    std::string out;
    const auto lines = reached_lines(reached, [&](const TensorId& id) { return name(id); });
    for (const std::string& line : lines) out += out.empty() ? origin_line("elsewhere", line) : origin_more(line);
    return out;
  }

  std::string chain_text(const std::vector<ChainLink>& chain) const {
    std::string out;
    const bool elided = !style_.wide && chain.size() > kLongChain;
    for (size_t i = 0; i < chain.size(); ++i) {
      if (elided && i == kChainHead) {
        out += fmt::format(" -> ... {} more ...", chain.size() - kChainHead - kChainTail);
        i = chain.size() - kChainTail;
      }
      const ChainLink& link = chain[i];
      if (i > 0) out += " -> ";
      out += node_name(link.tensor);
      if (!link.bad) {
        const bool given = gives_to_others(session_.node(link.tensor));
        out += fmt::format("  {} {}", given ? "given to other ranks: its output here" : "absorbed: its output", absorbed_text(link.stats));
      } else if (i > 0 && (i == 1 || i + 1 == chain.size()) &&
                 session_.node(link.tensor).kind != NodeKind::kParameter) {
        if (const std::string bad = nonfinite_text(link.stats); !bad.empty()) out += fmt::format(" ({})", bad);
      }
    }
    return out;
  }

  std::string loss_text(const TensorId& loss) const {
    const Result<Stats> stats = session_.stats(loss);
    const std::string value = stats && stats->min == stats->min ? format_short(stats->min, 5) + ", finite" : "sound";
    return origin_line("the loss", fmt::format("{}: it does not show the fault", value));
  }

  Session& session_;
  const OriginResult& result_;
  const ReportStyle& style_;
  std::map<std::pair<int, int>, TensorId> last_;
  size_t repeated_ = 0, skipped_ = 0;
  size_t rows_ = 0;  ///< origins of the steps before
  bool any_ = false;
};

}  // namespace

std::string origin_report(Session& session, const OriginResult& result, const ReportStyle& style) {
  if (style.format == Format::kJson) return json_text(origin_answer(session, result));
  if (style.format == Format::kJsonl) return json_lines(origin_answer(session, result), "origins");
  return fitted(OriginText(session, result, style).text(), style);
}

}  // namespace msdbg
