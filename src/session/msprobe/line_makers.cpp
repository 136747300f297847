#include "session/msprobe/line_makers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace msdbg::msprobe {
namespace {

/// So many other calls must agree: a model may treat one of a few layers in a way of its own.
constexpr size_t kFewestAgreeing = 3;

std::string text_of_stack(const std::vector<StackFrame>& stack) {
  std::string text;
  for (const StackFrame& frame : stack) text += fmt::format("{}:{}\n", frame.file.get(), frame.line);
  return text;
}

}  // namespace

LineMakers::LineMakers(const StepTable& step) : step_(step), line_of_(step.calls.size(), kNoCall), begins_(step.calls.size()) {
  std::unordered_map<const std::vector<StackFrame>*, uint32_t> read;  // most calls of a line share one list
  std::unordered_map<std::string, uint32_t> stacks;
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> numbers;  // by stack and function
  for (uint32_t call = 0; call < step.calls.size(); ++call) {
    begins_[call] = call;
    const CallFacts& facts = step.facts[call];
    const bool runs = facts.role == CallRole::kForward || (step.modules_only && facts.role == CallRole::kModule);
    if (!runs || facts.recomputed || facts.stack.empty()) continue;
    const auto [known, unread] = read.try_emplace(&facts.stack.get(), 0);
    if (unread) known->second = stacks.try_emplace(text_of_stack(facts.stack.get()), static_cast<uint32_t>(stacks.size())).first->second;
    const auto [at, fresh] = numbers.try_emplace({known->second, facts.name.op}, static_cast<uint32_t>(lines_.size()));
    if (fresh) lines_.emplace_back();
    lines_[at->second].push_back(call);
    line_of_[call] = at->second;
  }
  // A module comes where it ended, so what ran in it has lower numbers; a file may name a circle of callers.
  constexpr int kMostCallers = 64;
  for (uint32_t call = 0; call < step.calls.size(); ++call) {
    uint32_t caller = step.facts[call].caller_call;
    for (int hop = 0; caller != kNoCall && hop < kMostCallers && begins_[caller] > call; ++hop) {
      begins_[caller] = call;
      caller = step.facts[caller].caller_call;
    }
  }
}

std::vector<Clash> LineMakers::clashes() const {
  std::vector<Clash> out;
  for (const Line& line : lines_) {
    if (line.size() < kFewestAgreeing + 1) continue;
    size_t slots = 0;
    for (const uint32_t call : line) slots = std::max(slots, std::min(step_.calls[call].inputs.size(), step_.makers[call].size()));
    for (uint32_t slot = 0; slot < slots; ++slot) look_at(line, slot, &out);
  }
  std::stable_sort(out.begin(), out.end(), [](const Clash& a, const Clash& b) { return a.after_call < b.after_call; });
  return out;
}

void LineMakers::look_at(const Line& line, uint32_t slot, std::vector<Clash>* out) const {
  uint32_t from = kNoCall, output = 0;  // the line that makes this input
  for (size_t i = 1; i < line.size() && from == kNoCall; ++i) {
    if (slot >= step_.makers[line[i]].size()) return;
    const Maker& maker = step_.makers[line[i]][slot];
    if (maker.call == kNoCall || maker.parameter) continue;
    from = line_of_[maker.call];
    output = maker.slot;
  }
  if (from == kNoCall) return;
  uint32_t stranger = kNoCall;
  size_t agreeing = 0;
  for (const uint32_t call : line) {
    // One call with other inputs: which slot is which cannot be told.
    if (slot >= step_.calls[call].inputs.size() || slot >= step_.makers[call].size()) return;
    const Record& taken = step_.calls[call].inputs[slot];
    const Maker& maker = step_.makers[call][slot];
    if (maker.call == kNoCall) {
      if (!tells_its_maker(taken)) continue;
      if (stranger != kNoCall) return;
      stranger = call;
      continue;
    }
    const bool agrees = !maker.parameter && line_of_[maker.call] == from && maker.slot == output &&
                        latest(from, begins_[call]) == maker.call;
    // The first layer takes what the layers before the loop made.
    if (!agrees && call != line.front()) return;
    agreeing += agrees ? 1 : 0;
  }
  // The first and the last layer are often special.
  if (stranger == kNoCall || stranger == line.front() || stranger == line.back() || agreeing < kFewestAgreeing) return;
  const uint32_t made = latest(from, begins_[stranger]);
  if (made == kNoCall || output >= step_.calls[made].outputs.size()) return;
  if (!is_foreign(step_.calls[made].outputs[output], step_.calls[stranger].inputs[slot])) return;
  if (changed_in_place(step_, {made, output, false}, stranger)) return;
  out->push_back({made, stranger, {Io::kOutput, output}, {Io::kInput, slot},
                  fmt::format("in {} other calls from its line, it is the output of that line", agreeing)});
}

uint32_t LineMakers::latest(uint32_t line, uint32_t before) const {
  const Line& calls = lines_[line];
  const auto after = std::lower_bound(calls.begin(), calls.end(), before);
  return after == calls.begin() ? kNoCall : *std::prev(after);
}

}  // namespace msdbg::msprobe
