#include "session/msprobe/usual_makers.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "session/msprobe/exchange_calls.h"
#include "session/msprobe/line_makers.h"

namespace msdbg::msprobe {
namespace {

/// Looks may pass over all calls; so many values are never overwritten one by one.
constexpr size_t kMostLooks = 1000;

class OverwrittenSearch {
 public:
  OverwrittenSearch(const std::vector<StepTable>& steps, const std::vector<std::vector<NodeId>>& nodes, const UsualMaker& usual)
      : steps_(steps), nodes_(nodes), usual_(usual), calls_(steps.size()) {
    if (steps.size() < 2) return;
    for (size_t step = 0; step < steps.size(); ++step) {
      for (uint32_t call = 0; call < nodes[step].size(); ++call) calls_[step].emplace(nodes[step][call], call);
    }
  }

  std::vector<Overwritten> run(size_t number) const {
    const StepTable& step = steps_[number];
    std::vector<Clash> clashes = find_clashes(step);
    std::vector<Clash> usual = steps_.size() < 2 ? LineMakers(step).clashes() : unlike_other_steps(number);
    // Of an input that shows it in both ways, the modules are the better evidence.
    std::erase_if(usual, [&](const Clash& each) {
      return std::any_of(clashes.begin(), clashes.end(), [&](const Clash& other) { return other.after_call == each.after_call; });
    });
    std::move(usual.begin(), usual.end(), std::back_inserter(clashes));
    std::stable_sort(clashes.begin(), clashes.end(), [](const Clash& a, const Clash& b) { return a.after_call < b.after_call; });
    std::vector<Overwritten> out;
    for (Clash& clash : clashes) {
      const NodeId before = nodes_[number][clash.before_call], after = nodes_[number][clash.after_call];
      if (before == kNoNode || after == kNoNode) continue;
      Overwritten& each = out.emplace_back();
      each.before.node = before;
      each.before.slot = clash.before;
      each.after.node = after;
      each.after.slot = clash.after;
      each.reason = std::move(clash.reason);
    }
    return out;
  }

 private:
  std::vector<Clash> unlike_other_steps(size_t number) const {
    const StepTable& step = steps_[number];
    std::vector<Clash> out;
    size_t looks = 0;
    for (uint32_t call = 0; call < nodes_[number].size(); ++call) {
      const CallRole role = step.facts[call].role;
      const bool module = step.modules_only && role == CallRole::kModule;
      if (nodes_[number][call] == kNoNode || (role != CallRole::kForward && !module)) continue;
      for (uint32_t slot = 0; slot < step.calls[call].inputs.size(); ++slot) {
        const std::optional<Maker> made = stranger_to(number, call, slot);
        if (!made || ++looks > kMostLooks || changed_in_place(step, *made, call)) continue;
        const bool doubtful = module || step.facts[made->call].role != CallRole::kForward;
        if (doubtful && !always_elsewhere(number, call, slot)) continue;
        out.push_back({made->call, call, {Io::kOutput, made->slot}, {Io::kInput, slot}, "it is that output in other steps"});
      }
    }
    return out;
  }

  /// The output that this input equals in other steps, if no call that is not recorded can have made it from that.
  std::optional<Maker> stranger_to(size_t number, uint32_t call, uint32_t slot) const {
    const StepTable& step = steps_[number];
    if (slot >= step.makers[call].size() || step.makers[call][slot].call != kNoCall) return std::nullopt;
    const Edge usual = usual_(nodes_[number][call], slot);
    if (usual.node == kNoNode) return std::nullopt;
    const auto maker = calls_[number].find(usual.node);  // a parameter is no call
    if (maker == calls_[number].end() || maker->second >= call || usual.slot >= step.calls[maker->second].outputs.size())
      return std::nullopt;
    const Maker made{maker->second, usual.slot, false};
    if (is_receive(step.facts[made.call].name)) return std::nullopt;  // what it recorded may not have arrived yet
    const bool foreign = is_foreign(step.calls[made.call].outputs[made.slot], step.calls[call].inputs[slot]);
    return foreign ? std::optional(made) : std::nullopt;
  }

  /// Between modules, calls run that nobody recorded, and one of them may leave its input as it is in some steps, such as a path that is
  /// dropped at random. The same holds for gradients, on which hooks work. So every other step must show the edge, and there must be three.
  bool always_elsewhere(size_t number, uint32_t call, uint32_t slot) const {
    constexpr size_t kFewestSteps = 3;
    size_t equal = 0;
    for (size_t other = 0; other < steps_.size(); ++other) {
      if (other == number) continue;
      const auto there = calls_[other].find(nodes_[number][call]);
      if (there == calls_[other].end()) continue;
      const std::vector<Maker>& makers = steps_[other].makers[there->second];
      if (slot < makers.size() && makers[slot].call != kNoCall) ++equal;
      else if (slot >= makers.size() || tells_its_maker(steps_[other].calls[there->second].inputs[slot])) return false;
    }
    return equal >= kFewestSteps;
  }

  const std::vector<StepTable>& steps_;
  const std::vector<std::vector<NodeId>>& nodes_;
  const UsualMaker& usual_;
  std::vector<std::unordered_map<NodeId, uint32_t>> calls_;  // by step: the call of a node
};

}  // namespace

std::vector<std::vector<Overwritten>> find_overwritten(const std::vector<StepTable>& steps, const std::vector<std::vector<NodeId>>& nodes,
                                                       const UsualMaker& usual) {
  const OverwrittenSearch search(steps, nodes, usual);
  std::vector<std::vector<Overwritten>> out;
  for (size_t number = 0; number < steps.size(); ++number) out.push_back(search.run(number));
  return out;
}

}  // namespace msdbg::msprobe
