// What other ranks say about a tensor: whether they have it, and what a collective took from them.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/collectives.h"
#include "analysis/why.h"

namespace msdbg {
namespace {

bool is_bad(const Stats& stats) { return stats.nan_count + stats.inf_count() > 0; }

class Ranks {
 public:
  Ranks(Session& session, const TensorId& id, WhyAnswer& answer)
      : session_(session), id_(id), graph_(*session.graph(id.rank, id.graph)), answer_(answer) {}

  void add() {
    if (answer_.kind != WhyKind::kHasValue && answer_.kind != WhyKind::kOverLimit) who_has_it();
    if (collective_kind(graph_.node(id_.node))) who_takes_part();
  }

 private:
  void who_has_it() {
    std::vector<int> with, without;
    for (const int rank : session_.ranks()) {
      const Graph* const graph = session_.graph(rank, id_.graph);
      const Node* const node = graph == nullptr ? nullptr : graph->find(graph_.node(id_.node).name);
      if (rank == id_.rank || node == nullptr) continue;
      TensorId there = id_;
      there.rank = rank;
      there.node = node->id;
      (session_.exists(there) ? with : without).push_back(rank);
    }
    if (with.empty() && without.empty()) return;
    const auto have = [](const std::vector<int>& ranks) {
      return fmt::format("{} {}", ranks_text(ranks), ranks.size() == 1 ? "has" : "have");
    };
    if (with.empty()) return say(have(without) + " no value either");
    say(fmt::format("{} it in step {}", have(with), id_.step));
    if (answer_.next.empty()) answer_.next = fmt::format("look at it with --rank {}", with.front());
  }

  void who_takes_part() {
    const Collectives collectives(session_.graphs());
    const Exchange* const exchange = collectives.find(graph_, id_.node);
    const std::string& op = graph_.node(id_.node).op;
    if (exchange != nullptr) {
      std::vector<int> ranks;
      for (const NodeRef& ref : exchange->members) ranks.push_back(ref.graph->rank());
      const std::string group = group_text(exchange->group, exchange->assumed);
      say(fmt::format("{} joins {}{}", op, ranks_text(ranks), group.empty() ? "" : " (" + group + ")"));
    }
    if (const std::string unknown = collectives.unknown_sources(graph_, id_.node); !unknown.empty()) say(unknown);
    const Result<Stats> own = session_.stats(id_);
    if (!own || !is_bad(*own) || id_.slot.io != Io::kOutput || exchange == nullptr) return;
    std::vector<int> finite;
    for (const NodeRef& ref : exchange->sources) look_at(ref, &finite);
    if (!finite.empty()) say(fmt::format("what went in on {} is finite", ranks_text(finite)));
  }

  /// What went into the call.
  void look_at(const NodeRef& ref, std::vector<int>* finite) {
    bool any = false, bad = false;
    for (uint32_t slot = 0; slot < ref.graph->node(ref.node).inputs.size(); ++slot) {
      TensorId id = id_;
      id.rank = ref.graph->rank();
      id.graph = ref.graph->id();
      id.node = ref.node;
      id.slot = {Io::kInput, slot};
      const Edge producer = ref.graph->effective_producer(ref.node, slot);
      if (!session_.exists(id) && producer.node != kNoNode) {
        id.node = producer.node;
        id.slot = {Io::kOutput, producer.slot};
      }
      const Result<Stats> stats = session_.stats(id);
      any = any || stats.ok();
      if (!stats || !is_bad(*stats)) continue;
      bad = true;
      say(fmt::format("on rank {} it took {}: {} of {} elements are NaN or Inf", id.rank, session_.tensor_name(id),
                      stats->nan_count + stats->inf_count(), stats->count));
    }
    if (any && !bad) finite->push_back(ref.graph->rank());
  }

  void say(std::string text) { answer_.evidence.push_back({std::move(text), ""}); }

  Session& session_;
  const TensorId id_;
  const Graph& graph_;
  WhyAnswer& answer_;
};

}  // namespace

void explain_ranks(Session& session, const TensorId& id, WhyAnswer& answer) {
  if (session.ranks().size() > 1) Ranks(session, id, answer).add();
}

}  // namespace msdbg
