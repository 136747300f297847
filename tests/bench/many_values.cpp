#include "many_values.h"

#include "held_training.h"

namespace msdbg::bench {
namespace {

/// The training as a session that does not know the next reads of a check: every value is requested separately.
class OneByOne final : public Session {
 public:
  explicit OneByOne(LiveSession& live) : live_(live) {}

  const SessionInfo& info() const override { return live_.info(); }
  bool can_step() const override { return true; }
  std::span<const int> ranks() const override { return live_.ranks(); }
  std::span<const GraphPtr> graphs() const override { return live_.graphs(); }
  std::vector<int64_t> steps() const override { return live_.steps(); }
  std::vector<int64_t> steps(int rank, int graph) const override { return live_.steps(rank, graph); }
  std::vector<TensorId> tensors(const TensorQuery& query) override { return live_.tensors(query); }
  uint32_t executions(int rank, int graph, int64_t step, NodeId node) override { return live_.executions(rank, graph, step, node); }
  Result<OpenTensor> open(const TensorId& id) override { return live_.open(id); }
  Result<TensorInfo> describe(const TensorId& id) override { return live_.describe(id); }
  std::optional<Stats> given_statistics(const TensorId& id) override { return live_.given_statistics(id); }
  Result<TensorId> previous(const TensorId& id, bool* history_missing) override { return live_.previous(id, history_missing); }
  Result<bool> operator_overflow(const TensorId& id) override { return live_.operator_overflow(id); }
  SessionReport inspect() override { return live_.inspect(); }

 private:
  LiveSession& live_;
};

/// Seconds for a step with almost no work, and for a check at its end with a function on every small tensor.
double step_and_check(LiveSession& live, Session& session, int nodes) {
  if (Result<RunResult> result = live.run({}); !result || !result->held) die("a step was not held");
  Watchpoint watch;
  watch.id = 1;
  watch.rule = "function";
  watch.on = *Selector::parse("scope:Default/small");
  int called = 0;
  watch.script = [&](const CheckedTensor& tensor) {
    ++called;
    ScriptVerdict verdict;
    verdict.verdict = tensor.stats->max > 1e30 ? Verdict::kHit : Verdict::kClean;
    return verdict;
  };
  CheckOptions options;
  options.steps = IntSet::of(live.current_step());
  const auto start = Clock::now();
  Result<CheckResult> result = check(session, {&watch, 1}, options);
  const double seconds = seconds_since(start);
  if (!result) die(result.status().message());
  if (called != nodes || result->coverage.checked != static_cast<uint64_t>(nodes)) die("not every tensor was checked");
  return seconds;
}

}  // namespace

void many_values(const std::string& trainer, bool small) {
  for (const int nodes : small ? std::vector<int>{500} : std::vector<int>{20000, 100000}) {
    Held held(trainer, {"--backend", "Ascend", "--steps", "100000", "--width", "1", "--small-nodes", std::to_string(nodes)});
    std::vector<double> alone, together, ratios;
    for (int round = 0; round < (small ? 2 : 3); ++round) {
      OneByOne one_by_one(*held.session);
      alone.push_back(step_and_check(*held.session, one_by_one, nodes));
      together.push_back(step_and_check(*held.session, *held.session, nodes));
      ratios.push_back(together.back() / alone.back());
    }
    std::printf("RATIO function_on_%d_values_over_one_by_one %.3f target <= 0.2 (%.2f s in a step, one by one %.2f s)\n", nodes,
                median(ratios), median(together), median(alone));
    (void)held.session->terminate(10s);
  }
}

}  // namespace msdbg::bench
