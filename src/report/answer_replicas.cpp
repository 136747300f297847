// What ranks must share, and what they do not.
#include "msdbg/replicas_report.h"

namespace msdbg {
namespace {

Answer difference_answer(const Session& session, const ReplicaDifference& difference) {
  Answer out = place_answer(session, difference.tensor);
  Answer first = Answer::array(), values = Answer::array(), reached = Answer::array(), also = Answer::array();
  for (const DifferentElement& element : difference.first) {
    first.push_back(element.at);
    values.push_back({{"expected", element.expected}, {"actual", element.actual}});
  }
  for (const TensorId& id : difference.reached) reached.push_back(place_answer(session, id));
  for (const TensorId& id : difference.also) also.push_back(place_answer(session, id));
  const Node& shows = session.node(difference.seen);
  out["cause"] = replica_cause_name(difference.cause);
  out["odd_ranks"] = difference.odd;
  out["other_ranks"] = difference.others;
  out["decided"] = difference.decided;
  out["assumed"] = difference.assumed;
  out["elements"] = difference.elements;
  out["of"] = difference.of;
  out["first"] = std::move(first);
  out["values"] = std::move(values);
  out["bits"] = difference.bits;
  out["single_flip"] = difference.single_flip;
  out["moved"] = difference.moved ? Answer(*difference.moved) : Answer();
  out["own_way"] = difference.own_way;
  out["held"] = difference.held ? Answer(*difference.held) : Answer();
  out["alone"] = difference.alone;
  out["staying"] = difference.staying;
  out["problem"] = text_answer(difference.problem);
  out["arguments"] = text_answer(difference.arguments);
  out["called"] = difference.called ? place_answer(session, *difference.called) : Answer();
  out["steps"] = difference.steps;
  out["first_operator"] = shows.kind == NodeKind::kOperator ? Answer(shows.name) : Answer();
  out["seen"] = place_answer(session, difference.seen);
  out["expected"] = place_answer(session, difference.expected);
  out["reached"] = std::move(reached);
  out["also"] = std::move(also);
  out["not_seen"] = difference.not_seen;
  out["text"] = difference_sentence(difference);
  out["source"] = source_answer(shows);
  return out;
}

}  // namespace

Answer replicas_answer(const Session& session, const ReplicasResult& result) {
  Answer sets = Answer::array(), left_out = Answer::array(), differences = Answer::array(), not_checked = Answer::array();
  for (const ReplicaSet& set : result.sets) {
    sets.push_back({{"ranks", set.ranks},
                    {"what", replica_kind_name(set.what)},
                    {"assumed", set.assumed},
                    {"reason", set.reason},
                    {"tensors", set.tensors},
                    {"different", set.different}});
  }
  for (const NotReplicated& entry : result.not_replicated) {
    left_out.push_back({{"reason", entry.reason}, {"tensors", entry.tensors}, {"examples", entry.examples}});
  }
  for (const ReplicaDifference& difference : result.differences) differences.push_back(difference_answer(session, difference));
  for (const NotChecked& entry : result.not_checked) not_checked.push_back(not_checked_answer(session, entry));
  return {{"dump", session.info().source},
          {"ranks", result.ranks},
          {"steps", result.steps},
          {"interrupted", result.interrupted},
          {"nothing", text_answer(result.nothing)},
          {"sets", std::move(sets)},
          {"not_replicated", std::move(left_out)},
          {"differences", std::move(differences)},
          {"coverage", coverage_answer(result.coverage)},
          {"by_checksum", result.by_checksum},
          {"by_statistics", result.by_statistics},
          {"not_checked", std::move(not_checked)}};
}

}  // namespace msdbg
