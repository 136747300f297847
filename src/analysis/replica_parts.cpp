#include "analysis/replica_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace msdbg {
namespace {

std::vector<int> ranks_of(const ReplicaValue& value) {
  std::vector<int> out;
  for (const auto& [rank, ref] : value.nodes) out.push_back(rank);
  return out;
}

/// Two ranks stay together if they are so in both.
Parts meet(const Parts& a, const Parts& b) {
  Parts out;
  for (const std::vector<int>& left : a) {
    for (const std::vector<int>& right : b) {
      std::vector<int> both;
      std::ranges::set_intersection(left, right, std::back_inserter(both));
      if (!both.empty()) out.push_back(std::move(both));
    }
  }
  return out;
}

bool one_shape(const Sighting& sighting) {
  const ReplicaPrint* first = nullptr;
  for (const auto& [rank, copy] : sighting.copies) {
    if (!copy.print) continue;
    if (first == nullptr) first = copy.print.get();
    if (copy.print->shape != first->shape || copy.print->dtype != first->dtype) return false;
  }
  return true;
}

/// True for an optimizer's state whose ranks hold slices: of other shapes than their weight, or different on each of three ranks and more.
bool is_cut(const Sighting& state, const Sighting* weight) {
  if (!one_shape(state)) return true;
  std::vector<int> ranks;
  for (const auto& [rank, copy] : state.copies) {
    if (!copy.print) continue;
    ranks.push_back(rank);
    const auto own = weight == nullptr ? state.copies.end() : weight->copies.find(rank);
    if (weight != nullptr && own != weight->copies.end() && own->second.print && own->second.print->shape != copy.print->shape) return true;
  }
  return ranks.size() > 2 && equal_ranks(state, ranks).size() == ranks.size();
}

bool is_all_nan(const ReplicaPrint& print) {
  if (!print.bits.nan || print.by != ReplicaEvidence::kElements) return false;
  const std::optional<uint64_t> count = element_count(print.shape);
  return count && print.bits == all_nan_print(print.dtype, *count);
}

}  // namespace

bool is_single_number(const Sighting& sighting) {
  return std::ranges::all_of(sighting.copies, [](const auto& copy) {
    return !copy.second.print || element_count(copy.second.print->shape) == 1;
  });
}

/// `learning_rate` of one number for each step.
static bool is_schedule(const ReplicaValue& value, const Sighting& sighting) {
  return !value.like && value.name.substr(value.name.find_last_of("./") + 1).starts_with("learning_rate") &&
         std::ranges::all_of(sighting.copies, [](const auto& copy) { return !copy.second.print || copy.second.print->shape.size() == 1; });
}

bool is_setting(const ReplicaValue& value, const Sighting& sighting) {
  return value.what == ReplicaKind::kOptimizerState && !value.of_single_number && (is_single_number(sighting) || is_schedule(value, sighting));
}

void ReplicaParts::decide(const std::vector<Sighting>& seen, int64_t step) {
  const size_t count = model_.values().size();
  std::vector<const Sighting*> first(count);  // by value: a parameter's own file, else the first operator that took it
  for (const Sighting& sighting : seen) {
    const Sighting*& known = first[sighting.value];
    if (known == nullptr || (known->is_input() && !sighting.is_input())) known = &sighting;
  }
  for (size_t i = 0; i < count; ++i) {
    if (first[i] != nullptr && value(i).what == ReplicaKind::kParameter && is_single_number(*first[i])) single_.insert(i);
  }
  for (size_t i = 0; i < count; ++i) {
    if (first[i] == nullptr) continue;
    const std::optional<size_t> weight = model_.weight_of(value(i));
    value(i).of_single_number = weight && single_.contains(*weight);
  }
  for (size_t i = 0; i < count; ++i) {
    const bool by_equality = value(i).is_parameter() ? !value(i).like : value(i).nameless;
    if (first[i] == nullptr || !value(i).parts.empty() || !by_equality) continue;
    decide_parameter(i, *first[i], step);
  }
  // States of shards may be equal by chance: all infinite, or zero.
  for (size_t i = 0; i < count; ++i) {
    const std::optional<size_t> weight = decided_[i] == step && !value(i).like ? model_.weight_of(value(i)) : std::nullopt;
    if (weight && value(i).parts.size() == 1 && value(*weight).parts.size() > 1 && !is_setting(value(i), *first[i])) inherit(i, *weight);
  }
  for (size_t i = 0; i < count; ++i) {
    ReplicaValue& state = value(i);
    if (!state.parts.empty() || !state.like || first[i] == nullptr) continue;
    const ReplicaValue& weight = value(*state.like);
    // A single number belongs to no shard, and the state may be cut where the weight is not.
    if (is_setting(state, *first[i]) || (!weight.drifts && is_cut(*first[i], first[*state.like]))) {
      decide_parameter(i, *first[i], step);
    } else if (!weight.parts.empty()) {
      inherit(i, *state.like);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    if (value(i).parts.empty() && !value(i).is_parameter() && !value(i).nameless) decide_computed(i);
  }
}

void ReplicaParts::inherit(size_t state, size_t weight) {
  const ReplicaValue& from = value(weight);
  value(state).parts = from.parts;
  value(state).assumed = from.assumed;
  value(state).reason = from.reason;
  value(state).reasons = from.reasons;
}

void ReplicaParts::decide_parameter(size_t index, const Sighting& sighting, int64_t step) {
  ReplicaValue& given = value(index);
  const std::vector<int> ranks = ranks_of(given);
  const Parts equal = equal_ranks(sighting, ranks);
  size_t present = 0;
  for (const std::vector<int>& part : equal) present += part.size();
  if (present < 2) return;
  if (!one_shape(sighting)) return model_.leave_out(index, "sharded: their shapes differ between ranks");
  if (equal.size() > 1 && given.what == ReplicaKind::kParameter && !is_single_number(sighting)) ++splits_[{given.graph, step}][equal];
  const int of_most = equal.front().front();
  if (equal.front().size() > 1 && is_all_nan(*sighting.copies.at(of_most).print))
    return model_.leave_out(index, fmt::format("all NaN in step {}, the first with them: nothing tells whether they were equal before", step));
  const bool steers = is_setting(given, sighting);
  const bool majority = 2 * equal.front().size() > present;
  const bool even = equal.size() > 1 && equal.front().size() > 1 &&
                    std::ranges::all_of(equal, [&](const auto& part) { return part.size() == equal.front().size(); });
  if (given.nameless && given.is_parameter() && equal.size() > 1)
    return model_.leave_out(index, fmt::format("they differ in step {}, and nothing tells that they are weights", step));
  if (given.guessed && !steers && equal.size() > 1)
    return model_.leave_out(index, fmt::format("they differ in step {}, and there is no graph file that tells what they are", step));
  if (!steers && !majority && !even && !given.drifts) {
    // Functional collectives, such as those of DTensor, are not recorded.
    const bool calls = given.nodes.begin()->second.graph->recorded_calls();
    const std::string_view why = model_.joined() ? "shards or values of each rank: they"
                                 : calls         ? "shards or values of each rank: no collective is recorded, and they"
                                                 : "each rank has its own: no collective joins the ranks, and they";
    model_.leave_out(index, fmt::format("{} differ in step {}, the first with them", why, step));
    return;
  }
  decided_[index] = step;
  given.parts = last_.shared(steers || majority || given.drifts ? Parts{ranks} : equal);
  given.reason = last_.shared(steers              ? "numbers that steer the optimizer"
                              : given.drifts      ? "trained with weights whose gradients pass AllReduce"
                              : equal.size() == 1 ? fmt::format("equal in step {}", step)
                              : majority          ? fmt::format("equal on most ranks in step {}", step)
                                                  : fmt::format("equal within these ranks in step {}", step));
}

void ReplicaParts::split(size_t index, const Parts& equal, int64_t step) {
  value(index).parts = last_.shared(equal);
  value(index).reason = last_.shared(fmt::format("equal within these ranks in step {}", step));
}

bool ReplicaParts::split_like_others(size_t index, const Parts& equal, int64_t step) {
  ReplicaValue& given = value(index);
  if (!given.assumed || !decided_[index] || step == *decided_[index] || !model_.may_be_pipeline()) return false;
  const auto splits = splits_.find({given.graph, *decided_[index]});
  if (given.parts.size() != 1 || splits == splits_.end()) return false;
  const auto most = std::ranges::max_element(splits->second, {}, [](const auto& entry) { return entry.second; });
  if (most->first != equal) return false;
  const bool shared = equal.front().size() > 1;
  const auto part = [&](size_t at) {
    if (!shared)
      return model_.leave_out(at, fmt::format("equal in step {} by chance: they differ as other weights do from step {} on", *decided_[index], step));
    split(at, equal, step);
  };
  part(index);
  for (size_t i = 0; i < model_.values().size(); ++i) {
    if (value(i).like == index && !value(i).parts.empty() && value(i).parts.size() == 1) part(i);
  }
  return true;
}

void ReplicaParts::decide_computed(size_t index) {
  ReplicaValue& given = value(index);
  Parts parts = given.same_inputs.empty() ? Parts{ranks_of(given)} : Parts(given.same_inputs.begin(), given.same_inputs.end());
  bool assumed = given.collective;
  for (const size_t from : given.from) {
    if (value(from).parts.empty()) return;
    parts = meet(parts, value(from).parts);
    assumed = assumed || value(from).assumed;
  }
  if (parts.empty()) {
    for (const int rank : ranks_of(given)) parts.push_back({rank});
  }
  given.parts = last_.shared(std::move(parts));
  given.assumed = assumed;
  given.reason = last_.shared(given.collective ? "outputs of collectives whose group is unknown" : "computed from replicas");
}

}  // namespace msdbg
