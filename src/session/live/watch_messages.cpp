#include "session/live/watch_messages.h"

#include <algorithm>
#include <limits>
#include <cmath>

#include "msdbg/condition_numbers.h"

namespace msdbg::live {
namespace {

/// Space for names in one message; the other part of the 4 MiB is for the fields around them.
constexpr size_t kBytesPerMessage = size_t{3} << 20;
constexpr size_t kBytesAroundWatched = 16;

size_t cost(const WatchedName& watched) { return watched.name.size() + watched.type.size() + kBytesAroundWatched; }

/// Calls take(first, last) for each part.
template <typename Take>
void cut(std::span<const WatchedName> names, Take take) {
  size_t first = 0, bytes = 0;
  for (size_t at = 0; at < names.size(); ++at) {
    if (at > first && bytes + cost(names[at]) > kBytesPerMessage) {
      take(first, at);
      first = at;
      bytes = 0;
    }
    bytes += cost(names[at]);
  }
  take(first, names.size());
}

void add_params(const PeerProfile& profile, const Condition& condition, debugger::WatchCondition* message) {
  const ConditionSpec& spec = *condition.spec;
  if (spec.enumerator > condition_number::kOperatorOverflow && spec.enumerator <= condition_number::kLastLegacy) {
    const double value = condition.params.empty() ? 0 : condition.params.begin()->second;
    message->set_value(static_cast<float>(value));
    if (!profile.params) return;
    auto* param = message->add_params();
    param->set_name("param");
    param->set_value(value);
    return;
  }
  for (const ParamSpec& param : spec.params) {
    auto* out = message->add_params();
    out->set_name(std::string(param.name));
    std::optional<double> value = condition.param(param.name);
    if (!value && param.kind == ParamKind::kHidden) value = param.default_value;
    if (!value) {
      out->set_disabled(true);
      continue;
    }
    out->set_value(*value);
    message->set_value(static_cast<float>(*value));
  }
  // The client uses the first of the two parameters as atol, regardless of its name.
  if (spec.enumerator == condition_number::kNotChanged && profile.swaps_tolerances && message->params_size() >= 2) {
    const double first = message->params(0).value();
    message->mutable_params(0)->set_value(message->params(1).value());
    message->mutable_params(1)->set_value(first);
  }
}

/// True if the largest element is above `limit`.
debugger::WatchCondition largest_above(const PeerProfile& profile, double limit) {
  debugger::WatchCondition message;
  message.set_condition(profile.params ? debugger::WatchCondition::tensor_too_large : debugger::WatchCondition::max_gt);
  message.set_value(static_cast<float>(limit));
  if (!profile.params) return message;
  for (const std::string name : {"abs_mean_gt", "max_gt", "min_gt", "mean_gt"}) {
    auto* param = message.add_params();
    param->set_name(name);
    param->set_disabled(name != "max_gt");
    if (name == "max_gt") param->set_value(limit);
  }
  return message;
}

std::vector<debugger::EventReply> spread(const debugger::WatchCondition& condition, std::span<const WatchedName> names,
                                         std::span<const int> ids) {
  std::vector<debugger::EventReply> replies;
  cut(names, [&](size_t first, size_t last) {
    debugger::SetCMD* set = replies.emplace_back().mutable_set_cmd();
    set->set_id(ids[replies.size() - 1]);
    *set->mutable_watch_condition() = condition;
    for (size_t at = first; at < last; ++at) {
      auto* node = set->add_watch_nodes();
      node->set_node_name(names[at].name);
      node->set_node_type(names[at].type == "scope" ? "leaf" : names[at].type);
    }
  });
  return replies;
}

}  // namespace

bool peer_judges(const PeerProfile& profile, const Condition& condition) {
  const ConditionSpec& spec = *condition.spec;
  if (!profile.params) return spec.enumerator <= condition_number::kLastLegacy;
  // Without previous values a GPU client reports an error for every weight at every step, and never a hit.
  if (spec.needs_previous && !profile.keeps_previous) return false;
  return true;
}

size_t set_cmds_needed(std::span<const WatchedName> names) {
  size_t count = 0;
  cut(names, [&](size_t, size_t) { ++count; });
  return count;
}

std::vector<debugger::EventReply> make_set_cmds(const PeerProfile& profile, const Condition& condition,
                                                std::span<const WatchedName> names, std::span<const int> ids) {
  debugger::WatchCondition message;
  message.set_condition(static_cast<debugger::WatchCondition::Condition>(condition.spec->enumerator));
  add_params(profile, condition, &message);
  return spread(message, names, ids);
}

std::vector<debugger::EventReply> make_carriers(const PeerProfile& profile, std::span<const WatchedName> names,
                                                std::span<const int> ids) {
  if (!profile.params) return spread(largest_above(profile, std::numeric_limits<double>::infinity()), names, ids);
  // Initialization is evaluated only on a recheck before the first step, and only if some parameter is enabled.
  debugger::WatchCondition message;
  message.set_condition(debugger::WatchCondition::tensor_initialization);
  for (const char* name : {"zero_percentage_ge", "max_gt", "min_lt"}) {
    auto* param = message.add_params();
    param->set_name(name);
    param->set_disabled(true);
  }
  return spread(message, names, ids);
}

std::vector<debugger::EventReply> make_stops(const PeerProfile& profile, std::span<const WatchedName> names,
                                             std::span<const int> ids) {
  return spread(largest_above(profile, std::numeric_limits<float>::lowest()), names, ids);
}

debugger::EventReply make_delete(int id) {
  debugger::EventReply reply;
  reply.mutable_set_cmd()->set_delete_(true);
  reply.mutable_set_cmd()->set_id(id);
  return reply;
}

debugger::EventReply make_run(std::string_view level, const std::string& node, bool looked_at) {
  debugger::EventReply reply;
  debugger::RunCMD* run = reply.mutable_run_cmd();
  run->set_run_level(std::string(level));
  if (level == "step") run->set_run_steps(1);
  else if (level == "node") run->set_node_name(node);
  if (level == "recheck") return reply;
  run->set_looked_at(looked_at);
  run->set_begins(true);
  return reply;
}

debugger::EventReply make_exit() {
  debugger::EventReply reply;
  reply.set_exit(true);
  return reply;
}

std::vector<ParamResult> hit_params(const PeerProfile& profile, const Condition& condition,
                                    const debugger::WatchpointHit& hit) {
  std::vector<ParamResult> results;
  const auto& sent = hit.watch_condition().params();
  for (const ParamSpec& spec : condition.spec->params) {
    const std::optional<double> threshold = condition.param(spec.name);
    if (!threshold) continue;
    ParamResult result;
    result.name = std::string(spec.name);
    result.threshold = *threshold;
    const auto same = std::find_if(sent.begin(), sent.end(), [&](const auto& p) { return p.name() == spec.name || p.name() == "param"; });
    if (same != sent.end() && !same->disabled()) {
      result.hit = same->hit();
      // A value that was not evaluated comes back as 0 and not hit.
      if (same->hit() || same->actual_value() != 0) result.actual = same->actual_value();
    } else if (!profile.params) {
      result.hit = true;
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace msdbg::live
