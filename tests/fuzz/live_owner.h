// The user at the prompt of a live session: one command per byte.
#pragma once

#include "fuzz/session_walk.h"
#include "msdbg/check.h"
#include "msdbg/live.h"

namespace msdbg::fuzz {

inline std::vector<Watchpoint> watchpoints(uint8_t which) {
  static constexpr std::string_view kWhen[] = {"TO",
                                               "WNC",
                                               "WCL abs_mean_update_ratio_gt=0.1",
                                               "mean(abs(x)) > 1",
                                               "WI zero_percentage_ge=50",
                                               "TR range_percentage_lt=50 range_start_inclusive=0 range_end_inclusive=1",
                                               "any(x != prev)",
                                               "OO"};
  std::vector<Watchpoint> points;
  for (size_t i = 0; i < std::size(kWhen); ++i) {
    if ((which >> i & 1) == 0) continue;
    const Result<When> when = parse_when(kWhen[i]);
    if (!when) finding(when.status().message());
    Watchpoint& point = points.emplace_back();
    point.id = static_cast<int>(i) + 1;
    point.rule = kWhen[i];
    point.on = *Selector::parse("*");
    point.optional = true;
    if (const Condition* condition = std::get_if<Condition>(&*when)) point.condition = *condition;
    else point.expression = std::get<Expression>(*when);
  }
  return points;
}

/// A tensor selected by the input.
inline std::optional<TensorId> tensor(LiveSession& session, Input& input) {
  TensorQuery query;
  query.inputs = true;
  const std::vector<TensorId> ids = session.tensors(query);
  const size_t chosen = input.byte();
  return ids.empty() ? std::nullopt : std::optional(ids[chosen % ids.size()]);
}

inline void command(LiveSession& session, uint8_t which, Input& input) {
  constexpr std::chrono::milliseconds kNow{0};
  RunRequest request;
  switch (which % 14) {
    case 0: (void)session.state(), (void)session.take_events(), (void)session.steps(); return;
    case 1:
      if (const auto id = tensor(session, input)) (void)good(session.load(*id, 64 << 20));
      return;
    case 2:
      if (const auto id = tensor(session, input)) (void)good(session.stats(*id));
      return;
    case 3:
      if (const auto id = tensor(session, input)) (void)good(session.describe(*id)), (void)good(session.previous(*id, nullptr));
      return;
    case 4: expect_no_defect(session.set_watchpoints(watchpoints(input.byte()))); return;
    case 5: request.count = input.byte(); break;
    case 6: request.kind = RunKind::kContinue; break;
    case 7: request.kind = RunKind::kNextNode; break;
    case 8: {
      const size_t graph = input.byte(), node = input.byte();
      request.kind = RunKind::kToNode;
      if (session.graphs().empty()) break;
      const auto nodes = session.graphs()[graph % session.graphs().size()]->nodes();
      if (!nodes.empty()) request.node = nodes[node % nodes.size()].name;
      break;
    }
    case 9: (void)good(session.recheck()); return;
    case 10: (void)good(session.pause(kNow)); return;
    case 11: (void)good(session.terminate(kNow)); return;
    case 12: {
      CheckOptions options;
      options.threads = 1;
      (void)good(check(session, watchpoints(input.byte()), options));
      return;
    }
    case 13: expect_no_defect(session.detach()); return;
  }
  (void)good(session.run(request));
}

}  // namespace msdbg::fuzz
