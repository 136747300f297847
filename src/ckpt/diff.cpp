// Compares two sets of parameters: pairs them by name, the others by content, and compares every pair element by element.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "ckpt/parameters.h"
#include "msdbg/threads.h"

namespace msdbg {
namespace {

using namespace ckpt;

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// A parameter of A and its counterpart in B.
struct Pair {
  Parameter* a;
  Parameter* b;
  ParameterChange change;
};

std::string problem_of(const Parameter& parameter, std::string_view side) {
  return parameter.info.problem.ok() ? "" : fmt::format("{}: {}", side, parameter.info.problem.message());
}

void compare(const ParameterSource& a, const ParameterSource& b, Pair& pair) {
  ParameterChange& change = pair.change;
  std::string problem = problem_of(*pair.a, "A");
  if (problem.empty()) problem = problem_of(*pair.b, "B");
  const auto refuse = [&](std::string why) {
    change.kind = ChangeKind::kNotCompared;
    change.note = std::move(why);
  };
  if (!problem.empty()) return refuse(std::move(problem));
  const bool same_shape = change.shape_a == change.shape_b, same_type = change.dtype_a == change.dtype_b;
  if (pair.a->info.count == pair.b->info.count) {
    auto values = compare_values(*a.session, pair.a->id, *b.session, pair.b->id);
    if (!values) return refuse(values.status().message());
    change.values = std::move(*values);
  }
  if (!same_shape) {
    change.kind = ChangeKind::kReshaped;
    if (change.values && change.values->bit_equal) change.note = "the same values in their order";
  } else if (!same_type) {
    change.kind = ChangeKind::kRetyped;
    if (change.values && change.values->all_within()) change.note = "the same values";
  } else if (change.values->bit_equal) {
    change.kind = change.new_name.empty() ? ChangeKind::kUnchanged : ChangeKind::kRenamed;
  } else {
    change.kind = ChangeKind::kChanged;
    if (change.values->all_within()) change.note = "only signs of zero or bits of NaN differ";
  }
}

ParameterChange change_of(const Parameter* a, const Parameter* b) {
  ParameterChange change;
  change.name = a != nullptr ? a->name : b->name;
  if (a != nullptr) change.dtype_a = a->info.dtype, change.shape_a = a->info.shape;
  if (b != nullptr) change.dtype_b = b->info.dtype, change.shape_b = b->info.shape;
  return change;
}

/// If all elements are equal, content says little: then the ends of the names must match too.
bool may_be_same(const Parameter& a, const Parameter& b, const Fingerprint& print_a, const Fingerprint& print_b) {
  return a.info.dtype == b.info.dtype && a.info.shape == b.info.shape && print_a == print_b &&
         (!print_a.constant || last_part(a.name) == last_part(b.name));
}

class Renames {
 public:
  Renames(const ParameterSource& a, const ParameterSource& b, unsigned threads) : a_(a), b_(b), threads_(threads) {}

  /// Pairs leftover parameters with identical bytes. Among several candidates, one with the same name ending comes first.
  std::vector<std::pair<Parameter*, Parameter*>> find(std::vector<Parameter>& a, std::vector<Parameter>& b) {
    std::vector<Parameter*> lost = worth_reading(a, b), added = worth_reading(b, a);
    const auto prints_a = read(lost, *a_.session), prints_b = read(added, *b_.session);
    std::unordered_multimap<uint64_t, size_t> by_hash;
    for (size_t k = added.size(); k-- > 0;) {
      if (prints_b[k]) by_hash.emplace(prints_b[k]->hash, k);
    }
    std::vector<std::pair<Parameter*, Parameter*>> pairs;
    for (const bool same_end : {true, false}) {
      for (size_t i = 0; i < lost.size(); ++i) {
        if (!prints_a[i] || lost[i]->used) continue;
        std::vector<size_t> candidates;
        const auto [first, last] = by_hash.equal_range(prints_a[i]->hash);
        for (auto it = first; it != last; ++it) candidates.push_back(it->second);
        std::ranges::sort(candidates);
        for (const size_t k : candidates) {
          if (added[k]->used || (same_end && last_part(lost[i]->name) != last_part(added[k]->name))) continue;
          if (!may_be_same(*lost[i], *added[k], *prints_a[i], *prints_b[k])) continue;
          const auto same = same_bytes(*a_.session, lost[i]->id, *b_.session, added[k]->id);
          if (!same || !*same) continue;
          lost[i]->used = added[k]->used = true;
          pairs.emplace_back(lost[i], added[k]);
          break;
        }
      }
    }
    return pairs;
  }

 private:
  /// Parameters without a counterpart for which the other side has candidates of the same type and shape.
  static std::vector<Parameter*> worth_reading(std::vector<Parameter>& from, const std::vector<Parameter>& others) {
    std::set<std::pair<DType, Shape>> kinds;
    for (const Parameter& other : others) {
      if (!other.used && other.info.problem.ok()) kinds.emplace(other.info.dtype, other.info.shape);
    }
    std::vector<Parameter*> out;
    for (Parameter& parameter : from) {
      const bool readable = !parameter.used && parameter.info.problem.ok() && parameter.info.count > 0;
      if (readable && kinds.contains({parameter.info.dtype, parameter.info.shape})) out.push_back(&parameter);
    }
    return out;
  }

  std::vector<std::optional<Fingerprint>> read(const std::vector<Parameter*>& parameters, Session& session) const {
    std::vector<std::optional<Fingerprint>> prints(parameters.size());
    // A parameter that was interrupted or cannot be read has no counterpart.
    (void)parallel_for(parameters.size(), threads_, [&](size_t i, unsigned) {
      const auto print = fingerprint(session, parameters[i]->id);
      if (print) prints[i] = *print;
      return Status();
    });
    return prints;
  }

  const ParameterSource& a_;
  const ParameterSource& b_;
  unsigned threads_;
};

int place(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kChanged: return 0;
    case ChangeKind::kRetyped: return 1;
    case ChangeKind::kReshaped: return 2;
    case ChangeKind::kRenamed: return 3;
    case ChangeKind::kLost: return 4;
    case ChangeKind::kAdded: return 5;
    case ChangeKind::kNotCompared: return 6;
    case ChangeKind::kUnchanged: return 7;
  }
  return 8;
}

/// Sorts NaN as the largest.
double sort_ratio(const ParameterChange& change) {
  const double ratio = change.values ? update_ratio(*change.values) : 0;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
}

void sort_changes(std::vector<ParameterChange>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const ParameterChange& x, const ParameterChange& y) {
    if (x.breaks() != y.breaks()) return x.breaks();
    if (place(x.kind) != place(y.kind)) return place(x.kind) < place(y.kind);
    if (sort_ratio(x) != sort_ratio(y)) return sort_ratio(x) > sort_ratio(y);
    return x.name < y.name;
  });
}

/// nullopt: everything. One side may be empty if the other has parameters.
Status select(const ParameterSource& a, const ParameterSource& b, const std::optional<Selector>& on,
              std::optional<std::vector<NodeRef>>& nodes_a, std::optional<std::vector<NodeRef>>& nodes_b) {
  if (!on) return {};
  nodes_a = on->resolve(a.session->graphs());
  nodes_b = on->resolve(b.session->graphs());
  if (!nodes_a->empty() || !nodes_b->empty()) return {};
  return resolve_or_explain(*on, a.session->graphs()).status();
}

bool breaks_off(const ParameterSource& source) {
  const auto* checkpoint = dynamic_cast<const Checkpoint*>(source.session);
  return checkpoint != nullptr && checkpoint->facts().breaks_off;
}

}  // namespace

double update_ratio(const Comparison& values) {
  if (values.count > 0 && values.pairs == 0) return std::numeric_limits<double>::quiet_NaN();
  if (values.count == 0 || values.norm_error == 0) return 0;
  return values.norm_error / values.norm_a;
}

std::string_view change_kind_name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kUnchanged: return "unchanged";
    case ChangeKind::kChanged: return "changed";
    case ChangeKind::kRetyped: return "retyped";
    case ChangeKind::kReshaped: return "reshaped";
    case ChangeKind::kRenamed: return "renamed";
    case ChangeKind::kLost: return "lost";
    case ChangeKind::kAdded: return "added";
    case ChangeKind::kNotCompared: return "not compared";
  }
  return "";
}

bool ParameterChange::breaks() const { return values && values->nan_b + values->inf_b > values->nan_a + values->inf_a; }

uint64_t ParameterDiff::count(ChangeKind kind) const {
  return static_cast<uint64_t>(std::ranges::count_if(changes, [&](const ParameterChange& change) { return change.kind == kind; }));
}
bool ParameterDiff::equal() const { return !interrupted && count(ChangeKind::kUnchanged) == changes.size(); }
bool ParameterDiff::complete() const { return !interrupted && count(ChangeKind::kNotCompared) == 0; }

Result<ParameterDiff> diff_parameters(const ParameterSource& a, const ParameterSource& b, const ParameterDiffOptions& options) {
  std::optional<std::vector<NodeRef>> nodes_a, nodes_b;
  if (const Status status = select(a, b, options.on, nodes_a, nodes_b); !status.ok()) return status;
  std::vector<Parameter> list_a = parameters_of(a, nodes_a ? &*nodes_a : nullptr), list_b = parameters_of(b, nodes_b ? &*nodes_b : nullptr);
  std::unordered_map<std::string_view, Parameter*> by_name;
  for (Parameter& parameter : list_b) by_name.emplace(parameter.name, &parameter);
  std::vector<Pair> pairs;
  for (Parameter& parameter : list_a) {
    const auto found = by_name.find(parameter.name);
    if (found == by_name.end()) continue;
    parameter.used = found->second->used = true;
    pairs.push_back({&parameter, found->second, change_of(&parameter, found->second)});
  }
  if (options.find_renamed) {
    for (const auto& [from, to] : Renames(a, b, options.threads).find(list_a, list_b)) {
      pairs.push_back({from, to, change_of(from, to)});
      pairs.back().change.new_name = to->name;
    }
  }
  std::vector<char> done(pairs.size(), 0);
  (void)parallel_for(pairs.size(), options.threads, [&](size_t i, unsigned) {
    compare(a, b, pairs[i]);
    done[i] = !interrupt_requested();
    return Status();
  });

  ParameterDiff diff;
  diff.a = a.name;
  diff.b = b.name;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (done[i] != 0) diff.changes.push_back(std::move(pairs[i].change));
    else diff.interrupted = true;
  }
  for (const auto& [list, kind] : {std::pair{&list_a, ChangeKind::kLost}, std::pair{&list_b, ChangeKind::kAdded}}) {
    for (const Parameter& parameter : *list) {
      if (parameter.used) continue;
      const bool lost = kind == ChangeKind::kLost;
      diff.changes.push_back(change_of(lost ? &parameter : nullptr, lost ? nullptr : &parameter));
      diff.changes.back().kind = kind;
      diff.changes.back().note = problem_of(parameter, lost ? "A" : "B");
      if (!breaks_off(lost ? b : a)) continue;
      diff.changes.back().kind = ChangeKind::kNotCompared;
      diff.changes.back().note = fmt::format("only in {}, as far as {} can be read: it breaks off", lost ? "A" : "B", lost ? "B" : "A");
    }
  }
  sort_changes(diff.changes);
  return diff;
}

Result<CheckpointMatch> match_checkpoint(const ParameterSource& dump, const IntSet& steps, const ParameterSource& checkpoint,
                                         unsigned threads) {
  std::vector<Parameter> wanted = parameters_of(checkpoint, nullptr);
  CheckpointMatch match;
  bool anything = false;
  for (const int64_t step : dump.session->steps()) {
    if (!steps.contains(step)) continue;
    ParameterSource at = dump;
    at.step = step;
    const std::vector<Parameter> there = parameters_of(at, nullptr);
    std::unordered_map<std::string_view, const Parameter*> by_name;
    for (const Parameter& parameter : there) by_name.emplace(parameter.name, &parameter);
    enum class Answer : char { kAbsent, kEqual, kDifferent, kNotCompared };
    std::vector<Answer> answers(wanted.size(), Answer::kAbsent);
    const Status compared = parallel_for(wanted.size(), threads, [&](size_t i, unsigned) {
      const auto found = by_name.find(wanted[i].name);
      if (found == by_name.end()) return Status();
      const auto same = same_bytes(*dump.session, found->second->id, *checkpoint.session, wanted[i].id);
      answers[i] = !same                                                        ? Answer::kNotCompared
                   : *same && found->second->info.shape == wanted[i].info.shape ? Answer::kEqual
                                                                                : Answer::kDifferent;
      return Status();
    });
    if (!compared.ok()) return Status(Code::kInterrupted, "interrupted while the steps were compared");
    const auto count = [&](Answer answer) { return static_cast<uint64_t>(std::ranges::count(answers, answer)); };
    match.steps.push_back({step, count(Answer::kEqual), count(Answer::kDifferent), count(Answer::kNotCompared), count(Answer::kAbsent)});
    anything |= match.steps.back().absent < wanted.size();
    if (match.steps.back().equal > match.steps[match.best].equal) match.best = match.steps.size() - 1;
  }
  if (match.steps.empty()) {
    return Status(Code::kNotFound,
                  fmt::format("{} has no data for step {}; have steps {}", dump.name, steps.text(), numbers_text(dump.session->steps())));
  }
  if (!anything) {
    std::vector<std::string> names;
    for (const GraphPtr& graph : dump.session->graphs()) {
      for (const Node& node : graph->nodes()) {
        if (node.kind == NodeKind::kParameter) names.push_back(node.name);
      }
    }
    const std::string asked = wanted.empty() ? "" : wanted.front().name;
    const auto near = nearest(asked, names, 1);
    return Status(Code::kNotFound, fmt::format("no parameter of {} has a value in {} (rank {}, step {}); the checkpoint's first is '{}'{}",
                                               checkpoint.name, dump.name, dump.rank, steps.text(), printable(asked),
                                               near.empty() ? "" : fmt::format(", the dump's graph knows '{}'", printable(near[0]))));
  }
  ParameterSource best = dump;
  best.step = match.steps[match.best].step;
  ParameterDiffOptions options;
  options.find_renamed = false;
  options.threads = threads;
  auto detail = diff_parameters(best, checkpoint, options);
  if (!detail) return detail.status();
  match.detail = std::move(*detail);
  // Everything else in the dump (inputs, optimizer state) is irrelevant to the checkpoint.
  std::erase_if(match.detail.changes, [](const ParameterChange& change) { return change.kind == ChangeKind::kLost; });
  return match;
}

}  // namespace msdbg
