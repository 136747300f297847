#include "session/msprobe/overwritten.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

namespace msdbg::msprobe {
namespace {

bool alike(const Record& a, const Record& b) {
  return a.problem.empty() && b.problem.empty() && a.count > 0 && a.dtype == b.dtype && a.shape == b.shape;
}

bool has_extremes(const Record& record) { return (record.given & (kGivenMax | kGivenMin)) == (kGivenMax | kGivenMin); }

bool is_nan(const Record& record) { return std::isnan(record.max) || std::isnan(record.min); }

/// The only record that is like this one, or null.
const Record* only_one_like(const Record& record, const std::vector<Record>& records) {
  const Record* found = nullptr;
  for (const Record& each : records) {
    if (!alike(record, each)) continue;
    if (found != nullptr) return nullptr;
    found = &each;
  }
  return found;
}

bool any_like(const Record& record, const std::vector<Record>& records) {
  return std::any_of(records.begin(), records.end(), [&](const Record& each) { return alike(record, each); });
}

/// The number of a part of a container: 2 for `mlp.2` in `mlp`.
std::optional<uint64_t> place_in(std::string_view container, std::string_view part) {
  if (!container.empty()) {
    if (!part.starts_with(container) || part.size() <= container.size() + 1 || part[container.size()] != '.') return std::nullopt;
    part.remove_prefix(container.size() + 1);
  }
  if (part.empty() || part.size() > 9 || !std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  uint64_t number = 0;
  for (const char digit : part) number = number * 10 + static_cast<uint64_t>(digit - '0');
  return number;
}

/// The code that called it is that of a layer of the framework, not the program's.
bool called_by_framework(const CallFacts& facts) {
  for (const StackFrame& frame : facts.stack.get()) {
    const std::string& file = frame.file.get();
    if (file.find("/msprobe/") != std::string::npos) continue;
    return file.find("/torch/nn/modules/") != std::string::npos || file.find("/mindspore/nn/layer/") != std::string::npos;
  }
  return false;
}

class ClashSearch {
 public:
  explicit ClashSearch(const StepTable& step) : step_(step) {}

  std::vector<Clash> run() {
    std::unordered_map<uint32_t, std::vector<uint32_t>> parts;
    for (uint32_t call = 0; call < step_.calls.size(); ++call) {
      const CallFacts& facts = step_.facts[call];
      const bool runs = facts.role == CallRole::kForward || facts.role == CallRole::kModule;
      if (runs && !facts.recomputed && facts.caller_call != kNoCall) parts[facts.caller_call].push_back(call);
    }
    for (uint32_t call = 0; call < step_.calls.size(); ++call) {
      const auto found = parts.find(call);
      if (found == parts.end() || step_.facts[call].role != CallRole::kModule) continue;
      const std::string_view type = step_.facts[call].name.op;
      if (type == "Sequential" || type == "SequentialCell") look_at_container(call, found->second);
      if (found->second.size() == 1) look_at_layer(call, found->second.front());
    }
    std::stable_sort(found_.begin(), found_.end(), [](const Clash& a, const Clash& b) { return a.after_call < b.after_call; });
    return std::move(found_);
  }

 private:
  void look_at_container(uint32_t container, const std::vector<uint32_t>& parts) {
    const CallFacts& facts = step_.facts[container];
    std::optional<uint64_t> last;
    uint32_t before = kNoCall;
    for (const uint32_t part : parts) {
      const std::optional<uint64_t> place = place_in(facts.name.path, step_.facts[part].name.path);
      if (step_.facts[part].role != CallRole::kModule || !place) return;
      if (*place == 0) {
        compare_only(container, Io::kInput, part, fmt::format("{} passes it to its first part as it is", facts.name.op));
      } else if (last && *last + 1 == *place) {
        compare_only(before, Io::kOutput, part, fmt::format("{} passes it on as it is", facts.name.op));
      }
      last = place;
      before = part;
    }
  }

  /// Where there is one value on each side.
  void compare_only(uint32_t before, Io io, uint32_t after, std::string reason) {
    const std::vector<Record>& made = io == Io::kInput ? step_.calls[before].inputs : step_.calls[before].outputs;
    const std::vector<Record>& taken = step_.calls[after].inputs;
    if (made.size() != 1 || taken.size() != 1 || !must_differ(made[0], taken[0])) return;
    found_.push_back({before, after, {io, 0}, {Io::kInput, 0}, std::move(reason)});
  }

  /// A layer of the framework with one call, such as Linear, gives it what it got.
  void look_at_layer(uint32_t layer, uint32_t call) {
    const CallFacts& facts = step_.facts[call];
    if (facts.role != CallRole::kForward || !called_by_framework(facts)) return;
    const CallRecord& outer = step_.calls[layer];
    const CallRecord& inner = step_.calls[call];
    for (uint32_t slot = 0; slot < outer.inputs.size(); ++slot) {
      const Record& got = outer.inputs[slot];
      if (any_like(got, outer.parameters) || only_one_like(got, outer.inputs) == nullptr) continue;
      const Record* given = only_one_like(got, inner.inputs);
      if (given == nullptr || !must_differ(got, *given)) continue;
      const auto at = static_cast<uint32_t>(given - inner.inputs.data());
      found_.push_back({layer, call, {Io::kInput, slot}, {Io::kInput, at}, fmt::format("{} passes it to this call as it is",
                                                                                       step_.facts[layer].name.op)});
    }
  }

  const StepTable& step_;
  std::vector<Clash> found_;
};

}  // namespace

bool must_differ(const Record& a, const Record& b) {
  if (!alike(a, b) || !has_extremes(a) || !has_extremes(b)) return false;
  if (is_nan(a) || is_nan(b)) return is_nan(a) != is_nan(b);
  if (a.max != b.max || a.min != b.min) return true;
  // The same sum over the same shape; a device may still add in another order.
  const bool norms = (a.given & b.given & kGivenNorm) != 0 && std::isfinite(a.norm) && std::isfinite(b.norm);
  return norms && std::fabs(a.norm - b.norm) > 1e-3 * std::max(std::fabs(a.norm), std::fabs(b.norm));
}

bool tells_its_maker(const Record& record) {
  return record.problem.empty() && record.count >= 2 && record.dtype != DType::kBool && has_extremes(record) &&
         std::isfinite(record.max) && std::isfinite(record.min) && record.max != record.min;
}

bool is_foreign(const Record& made, const Record& taken) {
  // A view is not recorded, so shapes may differ.
  if (made.dtype != taken.dtype || made.count != taken.count || !tells_its_maker(made) || !tells_its_maker(taken)) return false;
  // Zero is what masks write.
  return taken.max > std::max(made.max, 0.0) || taken.min < std::min(made.min, 0.0);
}

bool changed_in_place(const StepTable& step, const Maker& made, uint32_t taken_by) {
  for (uint32_t call = made.call + 1; call < taken_by; ++call) {
    const std::string_view op = step.facts[call].name.op;
    const bool in_place = (op.ends_with('_') && !op.ends_with("__")) || op == "__setitem__" || op.starts_with("__i");
    const auto takes = [&](const Maker& maker) { return !maker.parameter && maker.call == made.call && maker.slot == made.slot; };
    if (in_place && std::any_of(step.makers[call].begin(), step.makers[call].end(), takes)) return true;
    for (const Attribute& attribute : step.calls[call].attributes) {
      const bool asked = attribute.name.get().ends_with("inplace") && attribute.value.get() == "true";
      if (asked && std::any_of(step.makers[call].begin(), step.makers[call].end(), takes)) return true;
    }
  }
  return false;
}

std::vector<Clash> find_clashes(const StepTable& step) { return ClashSearch(step).run(); }

}  // namespace msdbg::msprobe
