#include "session/msprobe/step_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <unordered_map>

#include "msdbg/file.h"
#include "session/msprobe/trace.h"

namespace msdbg::msprobe {
namespace {

/// A table of 50,000 tensors has 15 MB.
constexpr uint64_t kMaxTable = uint64_t{2} << 30;
constexpr int kMaxNesting = 64;

class StepReader {
 public:
  explicit StepReader(const Place& place) { out_.place = place; }

  StepTable run() {
    read_table_file();
    read_traces();
    order_parameter_gradients();
    describe_calls();
    forget_unwritten();
    out_.late_checksums = std::ranges::any_of(out_.calls, has_late_checksum);
    out_.makers = find_makers(out_.calls, places());
    return std::move(out_);
  }

 private:
  /// The input of an in-place call has the checksum of its output, but other statistics.
  static bool has_late_checksum(const CallRecord& call) {
    if (call.inputs.empty() || call.outputs.empty()) return false;
    const Record &before = call.inputs.front(), &after = call.outputs.front();
    const bool same = before.checksum_bits == 32 && after.checksum_bits == 32 && before.checksum == after.checksum;
    const auto known = [](const Record& record) { return !std::isnan(record.max) && !std::isnan(record.min); };
    return same && before.shape == after.shape && known(before) && known(after) && (before.max != after.max || before.min != after.min);
  }

  std::string file(const char* name) const { return (std::filesystem::path(out_.place.path) / name).string(); }
  void problem(Severity severity, const char* name, std::string message) {
    out_.problems.push_back({severity, file(name), std::move(message)});
  }

  void read_table_file() {
    const char* name = "dump.json";
    Result<std::string> text = read_text(file(name), kMaxTable);
    if (!text && text.status().code() == Code::kNotFound) {
      if (Result<std::string> saved = read_text(file("debug.json"), kMaxTable); saved || saved.status().code() != Code::kNotFound) {
        name = "debug.json";
        text = std::move(saved);
      }
    }
    if (!text) {
      out_.cut = fmt::format("{}: {}", name, without_path(text.status(), file(name)).message());
      problem(Severity::kError, name, without_path(text.status(), file(name)).message());
      return;
    }
    Table table = read_table(std::move(*text));
    out_.task = std::move(table.task);
    out_.level = std::move(table.level);
    out_.framework = std::move(table.framework);
    out_.calls = std::move(table.calls);
    out_.marks_recomputed = table.marks_recomputed;
    for (std::string& note : table.notes) problem(Severity::kWarning, name, std::move(note));
    if (!table.problem.empty()) {
      const std::string read = out_.calls.empty() ? "" : fmt::format("; the {} calls before that are used", out_.calls.size());
      problem(Severity::kError, name, table.problem + read);
      out_.cut = fmt::format("{}: {}", name, table.problem);
    }
    if (out_.task == "structure") return;
    if (out_.cut.empty() && out_.calls.empty()) {
      out_.cut = fmt::format("{} lists no call: the run ended before msprobe wrote its table", name);
      problem(Severity::kError, name, out_.cut);
    }
    if (!out_.cut.empty()) count_orphans();
  }

  /// Tensor files of calls that the table does not list.
  void count_orphans() {
    std::error_code error;
    std::filesystem::directory_iterator at(file("dump_tensor_data"), error);
    uint64_t files = 0;
    for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) ++files;
    uint64_t named = 0;
    for (const CallRecord& call : out_.calls) {
      for (const auto* records : {&call.inputs, &call.outputs, &call.parameters}) {
        for (const Record& record : *records) named += record.file.empty() ? 0 : 1;
      }
    }
    if (files <= named) return;
    const uint64_t orphans = files - named;
    out_.cut += fmt::format("; {} tensor files have no entry in it", orphans);
    problem(Severity::kWarning, "dump_tensor_data", fmt::format("{} tensor files have no entry in the table and are not read", orphans));
  }

  void read_traces() {
    if (Result<std::string> text = read_text(file("stack.json"), kMaxTable)) {
      Stacks read = read_stacks(std::move(*text));
      if (!read.problem.empty()) problem(Severity::kWarning, "stack.json", read.problem + ": source lines are missing from there on");
      out_.stacks_by_entry = read.by_entry;
      stacks_ = std::move(read.of);
    } else if (text.status().code() != Code::kNotFound) {
      problem(Severity::kWarning, "stack.json", without_path(text.status(), file("stack.json")).message());
    }
    if (Result<std::string> text = read_text(file("construct.json"), kMaxTable)) {
      Callers read = read_callers(std::move(*text));
      if (!read.problem.empty())
        problem(Severity::kWarning, "construct.json", read.problem + ": modules of calls are missing from there on");
      callers_ = std::move(read.of);
      if (out_.task == "structure" && out_.calls.empty()) {
        for (const std::string& name : read.order) {
          if (name.find('.') == std::string::npos) continue;  // optimizer, clip_grad
          out_.calls.emplace_back().name = name;
        }
      }
    } else if (text.status().code() != Code::kNotFound) {
      problem(Severity::kWarning, "construct.json", without_path(text.status(), file("construct.json")).message());
    }
  }

  /// Up to 8.3 they stand behind the forward call of their module, although the backward pass fills them.
  void order_parameter_gradients() {
    std::vector<CallRecord> gradients;
    std::unordered_map<std::string, size_t> last_backward;  // by stem
    size_t last_any = 0;
    for (size_t i = 0; i < out_.calls.size(); ++i) {
      const EntryName name = parse_entry_name(out_.calls[i].name);
      if (name.kind == EntryKind::kModuleBackward) last_backward[std::string(name.stem)] = i;
      if (name.is_backward()) last_any = i;
    }
    std::unordered_map<size_t, std::vector<CallRecord>> behind;
    std::vector<CallRecord> kept;
    for (size_t i = 0; i < out_.calls.size(); ++i) {
      const EntryName name = parse_entry_name(out_.calls[i].name);
      const bool early = name.kind == EntryKind::kParameterGradients && !name.number && last_any > i;
      if (early) {
        const auto own = last_backward.find(std::string(name.stem));
        behind[own == last_backward.end() || own->second < i ? last_any : own->second].push_back(std::move(out_.calls[i]));
        continue;
      }
      kept.push_back(std::move(out_.calls[i]));
      if (const auto waiting = behind.find(i); waiting != behind.end())
        std::move(waiting->second.begin(), waiting->second.end(), std::back_inserter(kept));
    }
    out_.calls = std::move(kept);
  }

  void describe_calls() {
    const size_t count = out_.calls.size();
    out_.facts.resize(count);
    out_.modules_only = count > 0;
    for (uint32_t i = 0; i < count; ++i) {
      by_name_.emplace(out_.calls[i].name, i);
      out_.facts[i].name = parse_entry_name(out_.calls[i].name);
      out_.modules_only = out_.modules_only && out_.facts[i].name.is_module();
    }
    for (uint32_t i = 0; i < count; ++i) {
      CallFacts& facts = out_.facts[i];
      if (const auto caller = callers_.find(out_.calls[i].name); caller != callers_.end()) facts.caller = caller->second;
      const auto own = by_name_.find(facts.caller);
      if (own != by_name_.end() && own->second != i) facts.caller_call = own->second;
      if (const auto stack = stacks_.find(out_.calls[i].name); stack != stacks_.end()) facts.stack = stack->second;
      if (facts.name.is_backward()) facts.forward = forward_of(facts.name);
    }
    for (uint32_t i = 0; i < count; ++i) finish(i);
  }

  /// Releases 1.x count the backward calls of a module in the order of the backward pass.
  uint32_t forward_of(const EntryName& name) {
    std::string forward(name.stem);
    if (name.kind == EntryKind::kBackward) {
      forward += ".forward";
    } else {
      uint64_t number = name.number.value_or(0);
      if (out_.stacks_by_entry) {
        uint64_t& calls = forward_calls_[std::string(name.stem)];
        while (by_name_.count(fmt::format("{}.forward.{}", name.stem, calls)) > 0) ++calls;
        if (number < calls) number = calls - 1 - number;
      }
      forward += fmt::format(".forward.{}", number);
    }
    const auto found = by_name_.find(forward);
    return found == by_name_.end() ? kNoCall : found->second;
  }

  void finish(uint32_t call) {
    CallFacts& facts = out_.facts[call];
    const CallFacts* forward = facts.forward == kNoCall ? nullptr : &out_.facts[facts.forward];
    if (forward != nullptr && facts.stack.empty()) facts.stack = forward->stack;
    const EntryName caller = parse_entry_name(facts.caller);
    facts.recomputed = facts.name.kind == EntryKind::kForward && caller.kind == EntryKind::kModuleBackward;
    if (facts.name.is_module()) facts.scope = scope_of_module(facts.name.path);
    else if (caller.is_module()) facts.scope = scope_of_module(caller.path);
    else facts.scope = facts.caller;
    facts.role = role_of(facts);
    // Where gradients cross a call that is no module, the recorder loses the caller.
    if (facts.scope.empty() && forward != nullptr) facts.scope = parse_scope(*forward);
  }

  static std::string parse_scope(const CallFacts& forward) {
    const EntryName caller = parse_entry_name(forward.caller);
    return caller.is_module() ? scope_of_module(caller.path) : "";
  }

  static CallRole role_of(const CallFacts& facts) {
    switch (facts.name.kind) {
      case EntryKind::kBackward:
        return CallRole::kBackward;
      case EntryKind::kModule:
        return CallRole::kModule;
      case EntryKind::kModuleBackward:
        return CallRole::kModuleBackward;
      case EntryKind::kParameterGradients:
        return CallRole::kParameterGradients;
      case EntryKind::kForward:
        break;
    }
    const bool pseudo = facts.caller == "optimizer" || facts.caller == "clip_grad";
    return pseudo || (facts.caller.empty() && runs_in_optimizer(facts.stack)) ? CallRole::kOptimizer : CallRole::kForward;
  }

  /// What calls work on before anybody has written it.
  void forget_unwritten() {
    for (size_t i = 0; i < out_.calls.size(); ++i) {
      if (!takes_shards(out_.facts[i]) && !looks_for_shapes(out_.facts[i].stack)) continue;
      out_.calls[i].inputs.clear();
      out_.calls[i].outputs.clear();
    }
  }

  /// FSDP takes parts of memory into which it will gather the shards.
  static bool takes_shards(const CallFacts& facts) {
    return facts.name.op == "narrow" && !facts.stack.empty() &&
           facts.stack.begin()->file.get().find("/torch/distributed/fsdp/") != std::string::npos;
  }

  /// The stages of a pipeline run their networks once on memory as it is, to see what shapes come out.
  static bool looks_for_shapes(const SharedList<StackFrame>& stack) {
    return std::any_of(stack.begin(), stack.end(), [](const StackFrame& frame) {
      const std::string& code = frame.code.get();
      return (code.find("._prepare_forward_infra(") != std::string::npos || code.find("._prepare_backward_infra(") != std::string::npos) &&
             frame.file.get().find("/torch/distributed/pipelining/") != std::string::npos;
    });
  }

  static bool runs_in_optimizer(const SharedList<StackFrame>& stack) {
    return std::any_of(stack.begin(), stack.end(), [](const StackFrame& frame) {
      const std::string& path = frame.file.get();
      return path.find("/torch/optim/") != std::string::npos ||
             (path.find("/mindspore/") != std::string::npos && path.find("/optim/") != std::string::npos);
    });
  }

  std::vector<CallPlace> places() const {
    std::vector<CallPlace> places(out_.calls.size());
    for (uint32_t i = 0; i < places.size(); ++i) {
      const CallFacts& facts = out_.facts[i];
      places[i].module = !out_.modules_only && (facts.role == CallRole::kModule || facts.role == CallRole::kModuleBackward);
      places[i].in_place = facts.name.op.ends_with('_') && !facts.name.op.ends_with("__");
      places[i].gradients = facts.role == CallRole::kParameterGradients;
      places[i].optimizer = facts.role == CallRole::kOptimizer;
      places[i].path = facts.name.path;
      places[i].begin = i;
    }
    for (uint32_t i = 0; i < places.size(); ++i) {
      // A file may name a module as its own caller.
      uint32_t caller = out_.facts[i].caller_call;
      for (int hop = 0; caller != kNoCall && hop < kMaxNesting && places[caller].begin > i; ++hop) {
        places[caller].begin = i;
        caller = out_.facts[caller].caller_call;
      }
    }
    return places;
  }

  StepTable out_;
  std::unordered_map<std::string, SharedList<StackFrame>> stacks_;
  std::unordered_map<std::string, std::string> callers_;
  std::unordered_map<std::string, uint32_t> by_name_;
  std::unordered_map<std::string, uint64_t> forward_calls_;  // of modules in 1.x, by stem
};

}  // namespace

StepTable read_step(const Place& place) { return StepReader(place).run(); }

std::string parameter_name(const CallFacts& facts, const Record& record) {
  return facts.name.path.empty() ? record.path : fmt::format("{}.{}", facts.name.path, record.path);
}

std::vector<Attribute> gradient_names(const CallFacts& facts, const CallRecord& call) {
  std::vector<Attribute> names;
  for (uint32_t slot = 0; slot < call.outputs.size(); ++slot) {
    Record named;
    named.path = call.outputs[slot].path.substr(0, call.outputs[slot].path.rfind(".0"));  // a list of one
    names.push_back({SharedText(slot_name({Io::kOutput, slot})), SharedText(parameter_name(facts, named))});
  }
  return names;
}

std::string release_of(const std::vector<StepTable>& steps, RankForm form) {
  bool by_entry = false, numbered = false, unnumbered = false, marks = false, view_as = false;
  for (const StepTable& step : steps) {
    by_entry = by_entry || step.stacks_by_entry;
    marks = marks || step.marks_recomputed;
    for (const CallFacts& facts : step.facts) {
      if (facts.name.kind == EntryKind::kParameterGradients) (facts.name.number ? numbered : unnumbered) = true;
      view_as = view_as || facts.name.op == "view_as";
    }
  }
  if (by_entry) return "1.x";
  if (unnumbered || form == RankForm::kPlain) return view_as ? "8.1" : "8.3";
  if (numbered || form == RankForm::kProcess) return marks ? "26.0" : "26.2";
  return marks ? "8.1 to 26.0" : "26.2";
}

}  // namespace msdbg::msprobe
