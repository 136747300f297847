#include <fmt/format.h>

#include "msdbg/answers.h"
#include "msdbg/unfinished.h"
#include "report/origin_words.h"

namespace msdbg {
namespace {

std::string_view known_name(InputState state) {
  return state == InputState::kGood ? "sound" : state == InputState::kBad ? "bad" : "unknown";
}
std::string_view kind_name(OriginKind kind) {
  switch (kind) {
    case OriginKind::kOperator:
      return "operator";
    case OriginKind::kParameter:
      return "parameter";
    case OriginKind::kInput:
      return "input";
    case OriginKind::kUnrecorded:
      return "unrecorded";
  }
  return "operator";
}

Answer input_answer(Session& session, const Graph* graph, const OriginInput& input) {
  if (input.rank) graph = session.graph(*input.rank, graph->id());
  const Node* producer = graph && input.producer.node != kNoNode ? &graph->node(input.producer.node) : nullptr;
  Answer out;
  out["slot"] = slot_name({Io::kInput, input.slot});
  out["rank"] = input.rank ? Answer(*input.rank) : Answer();
  out["node"] = producer ? Answer(producer->name) : text_answer(input.producer.name);
  out["producer_slot"] = producer ? Answer(slot_name({Io::kOutput, input.producer.slot})) : Answer();
  out["state"] = known_name(input.state);
  out["reason"] = text_answer(input.reason);
  out["message"] = input_text(input);
  out["zeros_at_bad"] = input.zeros_at_bad;
  out["stats"] = stats_answer(session, input.stats, input.value);
  return out;
}

Answer chains_answer(Session& session, const Origin& origin) {
  Answer chains = Answer::array();
  for (const std::vector<ChainLink>& chain : origin.chains) {
    Answer links = Answer::array();
    for (const ChainLink& link : chain) {
      Answer entry = place_answer(session, link.tensor);
      entry["bad"] = link.bad;
      entry["not_finite"] = text_answer(nonfinite_text(link.stats));
      entry["stats"] = stats_answer(session, link.stats, link.tensor);
      links.push_back(std::move(entry));
    }
    chains.push_back(std::move(links));
  }
  return chains;
}

Answer loss_answer(Session& session, const TensorId& loss) {
  Answer out = place_answer(session, loss);
  const Result<Stats> stats = session.stats(loss);
  out["stats"] = stats_answer(session, stats ? std::optional(*stats) : std::nullopt, loss);
  return out;
}

}  // namespace

Answer origin_entry_answer(Session& session, const Origin& origin, const std::vector<int>& ranks, size_t order) {
  const Graph* graph = session.graph(origin.tensor.rank, origin.tensor.graph);
  Answer out;
  out["order"] = order;
  out["kind"] = kind_name(origin.kind);
  out["certain"] = origin.certain;
  out.update(place_answer(session, origin.tensor));
  out["ranks"] = ranks;
  out["dtype"] = dtype_name(origin.info.dtype);
  out["shape"] = origin.info.shape;
  out["message"] = broken_text(origin);
  out["not_finite"] = text_answer(nonfinite_text(origin.stats));
  out["stats"] = stats_answer(origin.stats, origin.info.shape);
  // Statistics that came with the dump may only say that there are some.
  const bool counted_all = origin.bad_count == 0 || origin.stats.knows(kStatNan | kStatPosInf | kStatNegInf);
  out["bad_count"] = counted_all ? Answer(origin.bad_count) : Answer();
  out["first"] = origin.first;
  out["rows"] = nullptr;
  if (origin.rows) {
    const auto& [rows, bad] = *origin.rows;
    out["rows"] = {{"affected", rows}, {"least_bad", bad.first}, {"most_bad", bad.second}};
  }
  Answer inputs = Answer::array();
  for (const OriginInput& input : origin.inputs) inputs.push_back(input_answer(session, graph, input));
  out["inputs"] = std::move(inputs);
  out["chains"] = chains_answer(session, origin);
  out["reached"] = origin.reached;
  out["ranks_reached"] = reached_answer(session, origin.ranks_reached);
  out["update"] = origin.update ? place_answer(session, *origin.update) : Answer();
  out["put_in"] = text_answer(origin.put_in);
  out["sound_before"] = origin.sound_before ? place_answer(session, *origin.sound_before) : Answer();
  out["part_of"] = origin.part_of ? place_answer(session, *origin.part_of) : Answer();
  out["bad_part"] = origin.bad_part ? place_answer(session, *origin.bad_part) : Answer();
  out["grown"] = Answer::array();
  for (const Grown& each : origin.grown) {
    Answer entry = place_answer(session, each.parameter);
    entry["largest"] = each.largest;
    entry["largest_before"] = each.before;
    entry["since"] = each.since ? Answer(*each.since) : Answer();
    entry["at_begin"] = each.at_begin;
    entry["value"] = each.value ? place_answer(session, *each.value) : Answer();
    entry["seen_by"] = each.seen_by ? place_answer(session, *each.seen_by) : Answer();
    entry["one_rank"] = each.one_rank;
    out["grown"].push_back(std::move(entry));
  }
  out["source"] = source_answer(session.node(origin.tensor));
  out["stack"] = stack_answer(session.node(origin.tensor));
  return out;
}

Answer origin_answer(Session& session, const OriginResult& result) {
  Answer origins = Answer::array(), steps = Answer::array();
  for (const StepOrigins& step : result.steps) {
    const Graph* graph = session.graph(step.rank, step.graph);
    Answer losses = Answer::array();
    for (const TensorId& loss : step.losses) losses.push_back(loss_answer(session, loss));
    steps.push_back({{"rank", step.rank},
                     {"ranks", step.ranks},
                     {"graph", graph ? graph->name() : ""},
                     {"graph_id", step.graph},
                     {"graphs_behind", step.graphs_behind},
                     {"step", step.step},
                     {"bad_tensors", step.bad_tensors},
                     {"origin_count", step.origins.size()},
                     {"losses", std::move(losses)}});
    for (size_t i = 0; i < step.origins.size(); ++i) origins.push_back(origin_entry_answer(session, step.origins[i], step.ranks, i + 1));
  }
  Answer put_in = Answer::array();
  for (const PutIn& entry : result.put_in) {
    Answer each = place_answer(session, entry.tensor);
    each["argument"] = entry.argument;
    each["tensors"] = entry.held_by.size();
    put_in.push_back(std::move(each));
  }
  Answer overwritten = Answer::array();
  for (const Overwritten& entry : result.overwritten) overwritten.push_back(overwritten_answer(session, entry));
  Answer not_checked = Answer::array();
  for (const NotChecked& entry : result.not_checked) not_checked.push_back(not_checked_answer(session, entry));
  Answer out;
  out["msdbg"] = kVersion;
  out["dump"] = session.info().source;
  out["predicate"] = result.predicate;
  out["interrupted"] = result.interrupted;
  out["coverage"] = coverage_answer(result.coverage);
  out["steps"] = std::move(steps);
  out["origins"] = std::move(origins);
  out["put_in"] = std::move(put_in);
  Answer overflows = Answer::array();
  for (const OverflowRecord& record : result.overflows) overflows.push_back(overflow_answer(session, record));
  out["overflows"] = std::move(overflows);
  out["overwritten"] = std::move(overwritten);
  out["not_checked"] = std::move(not_checked);
  Answer unfinished = Answer::array();
  for (const UnfinishedStep& each : unfinished_steps(session, result.asked_steps, result.asked_ranks)) {
    const Graph& graph = *session.graph(each.rank, each.graph);
    const Node& next = graph.node(each.next);
    unfinished.push_back({{"rank", each.rank}, {"graph", graph.name()}, {"graph_id", each.graph}, {"step", each.step}, {"node", next.name},
                          {"ran", each.ran}, {"operators", each.operators}, {"source", source_answer(next)}});
  }
  out["unfinished"] = std::move(unfinished);
  return out;
}

std::string overwritten_values(Session& session, const Overwritten& entry) {
  const auto range = [&](const TensorId& id) {
    const Result<Stats> stats = session.stats(id);
    if (!stats) return std::string("unknown");
    if (const std::string bad = nonfinite_text(*stats); !bad.empty()) return bad;
    return fmt::format("min {}, max {}", format_short(stats->min), format_short(stats->max));
  };
  std::string before = range(entry.before), after = range(entry.after);
  if (before != after) return fmt::format("{} instead of {}", after, before);
  const auto norm = [&](const TensorId& id) {
    const Result<Stats> stats = session.stats(id);
    return stats ? format_short(stats->l2_norm) : std::string("unknown");
  };
  return fmt::format("norm {} instead of {}", norm(entry.after), norm(entry.before));
}

Answer overflow_answer(const Session& session, const OverflowRecord& record) {
  Answer out;
  if (record.tensor) out = place_answer(session, *record.tensor);
  else out = {{"rank", record.rank}, {"graph", nullptr}, {"graph_id", nullptr}, {"step", record.step}, {"execution", nullptr},
              {"node", nullptr}, {"op", nullptr}, {"slot", nullptr}};
  out["task"] = record.task;
  out["stream"] = record.stream;
  out["unit"] = record.unit;
  out["source"] = record.tensor ? source_answer(session.node(*record.tensor)) : Answer();
  return out;
}

Answer overwritten_answer(Session& session, const Overwritten& entry) {
  Answer out = place_answer(session, entry.after);
  out["before"] = place_answer(session, entry.before);
  out["message"] = overwritten_values(session, entry);
  out["reason"] = entry.reason;
  out["source"] = source_answer(session.node(entry.after));
  out["stack"] = stack_answer(session.node(entry.after));
  return out;
}

}  // namespace msdbg
