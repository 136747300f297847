#include "analysis/replica_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/collectives.h"
#include "analysis/node_name.h"
#include "analysis/optimizer_inputs.h"
#include "analysis/replica_sets.h"
#include "msdbg/base.h"

namespace msdbg {
namespace {

/// The forward calls of a rank in a step, in execution order.
struct Program {
  const Graph* graph = nullptr;
  std::vector<NodeId> calls;
  std::vector<NodeId> modes;  // those of them that have one
  std::map<std::string_view, uint64_t> counts;  // by type
};
using Programs = std::map<int, Program>;  // by rank

/// Ranks that have one text, and those that have the other one.
struct Sides {
  std::vector<int> odd, others;
  std::string own, theirs;
};

std::optional<Sides> two_sides(const std::map<std::string, std::vector<int>>& groups) {
  if (groups.size() != 2) return std::nullopt;
  auto odd = groups.begin(), others = std::next(odd);
  if (odd->second.size() > others->second.size()) std::swap(odd, others);
  const bool even = odd->second.size() == others->second.size();
  if (even && odd->second.size() > 1) return std::nullopt;  // two kinds of ranks
  if (even && odd->second < others->second) std::swap(odd, others);
  return Sides{odd->second, others->second, odd->first, others->first};
}

using Calls = std::vector<NodeId> Program::*;

bool same_calls(const Program& a, const Program& b, Calls which) {
  return std::ranges::equal(a.*which, b.*which, [&](NodeId x, NodeId y) { return a.graph->node(x).name == b.graph->node(y).name; });
}

/// Calls that do something else while a network is trained.
bool has_mode(std::string_view op) {
  constexpr std::string_view kCalls[] = {"dropout", "Dropout", "batch_norm", "BatchNorm", "rrelu"};
  return has_any_word(op, kCalls);
}

/// What PyTorch calls an argument that was passed without its name.
std::string_view argument_name(std::string_view op, std::string_view argument) {
  struct Known {
    std::string_view op, argument, name;
  };
  static constexpr Known kKnown[] = {
      {"dropout", "input_args.1", "p"},        {"dropout", "input_args.2", "training"},  {"batch_norm", "input_args.5", "training"},
      {"batch_norm", "input_args.6", "momentum"}, {"batch_norm", "input_args.7", "eps"}, {"rrelu", "input_args.3", "training"},
      {"layer_norm", "input_args.4", "eps"},   {"rms_norm", "input_args.3", "eps"},      {"group_norm", "input_args.4", "eps"},
      {"softmax", "input_args.1", "dim"},      {"leaky_relu", "input_args.1", "negative_slope"}};
  const auto known = std::ranges::find_if(kKnown, [&](const Known& each) { return each.op == op && each.argument == argument; });
  return known == std::end(kKnown) ? argument : known->name;
}

/// Calls of a layer. Their numbers are the network's; those of other calls may belong to the data.
bool is_layer(std::string_view name) {
  return name.starts_with("Functional.") || name.starts_with("MintFunctional.") || name.starts_with("NPU.");
}

/// Calls that scale or shift what they take.
bool is_arithmetic(std::string_view op) {
  constexpr std::string_view kCalls[] = {"mul", "div", "truediv", "add", "sub", "pow", "clamp"};
  const size_t first = op.find_first_not_of('_'), last = op.find_last_not_of('_');
  return first != op.npos && std::ranges::count(kCalls, op.substr(first, last + 1 - first)) > 0;
}

/// A number, a truth or a word, not the size of anything and nothing that is of its rank.
bool is_fixed(std::string_view name, std::string_view value) {
  constexpr std::string_view kSigns = "._+-";
  const auto plain = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || kSigns.find(c) != kSigns.npos; };
  return !value.empty() && std::ranges::all_of(value, plain) && name.find("seed") == name.npos && name.find("offset") == name.npos;
}

bool is_truth(std::string_view value) { return value == "True" || value == "False" || value == "true" || value == "false"; }

class ProgramFinder {
 public:
  ProgramFinder(Session& session, ReplicasResult& result) : session_(session), result_(result) {}

  void run() {
    std::map<int, std::map<int, const Graph*>> graphs, compiled;  // by id and rank
    for (const GraphPtr& graph : session_.graphs()) {
      const bool asked = std::ranges::binary_search(result_.ranks, graph->rank());
      if (asked && graph->from_file()) (graph->recorded_calls() ? graphs : compiled)[graph->id()][graph->rank()] = graph.get();
    }
    for (const auto& [id, of_rank] : compiled) compare_graphs(of_rank, id);
    for (const auto& [id, of_rank] : graphs) {
      std::map<int64_t, Programs> steps;
      for (const int64_t step : result_.steps) {
        if (interrupt_requested()) return;
        Programs programs = programs_of(of_rank, id, step);
        if (programs.size() < 2) continue;
        compare(programs, id, step);
        for (auto& [rank, program] : programs) {
          program.calls.clear();
          program.modes.clear();
        }
        steps[step] = std::move(programs);
      }
      find_fewer(steps, id);
      add_numbers();
    }
    if (found_.empty()) return;
    result_.differences.insert(result_.differences.end(), std::make_move_iterator(found_.begin()), std::make_move_iterator(found_.end()));
    std::ranges::stable_sort(result_.differences, {}, [](const ReplicaDifference& each) { return each.tensor.step; });
  }

 private:
  Programs programs_of(const std::map<int, const Graph*>& graphs, int id, int64_t step) {
    Programs out;
    for (const auto& [rank, graph] : graphs) {
      if (!std::ranges::binary_search(session_.steps(rank, id), step)) continue;
      Program& program = out[rank];
      program.graph = graph;
      for (const NodeId call : graph->execution_order()) {
        const Node& node = graph->node(call);
        if (node.role != CallRole::kForward || collective_kind(node) || session_.executions(rank, id, step, call) == 0) continue;
        program.calls.push_back(call);
        if (has_mode(node.op.get())) program.modes.push_back(call);
        ++program.counts[node.op.get()];
      }
    }
    return out;
  }

  /// A call of one kind, on each rank.
  struct Place {
    const Programs& programs;
    int graph = 0;
    int64_t step = 0;
    Calls which = &Program::calls;
    size_t at = 0;

    TensorId output(int rank) const { return {rank, graph, step, 0, (programs.at(rank).*which)[at], {}}; }
  };

  // ---- the same calls on all ranks ----

  void compare(const Programs& programs, int id, int64_t step) {
    const Program& first = programs.begin()->second;
    const auto same = [&](Calls which) {
      return std::ranges::all_of(programs, [&](const auto& entry) { return same_calls(entry.second, first, which); });
    };
    // BatchNorm that is not trained counts no batches: the calls around it may differ.
    const size_t modes = same(&Program::modes) ? first.modes.size() : 0;
    for (size_t at = 0; at < modes; ++at) compare_modes({programs, id, step, &Program::modes, at});
    if (!same(&Program::calls)) return;
    for (size_t at = 0; at < first.calls.size(); ++at) compare_types({programs, id, step, &Program::calls, at});
    for (size_t at = 0; at < first.calls.size(); ++at) compare_numbers({programs, id, step, &Program::calls, at});
    for (ReplicaDifference& each : result_.differences) {
      const bool weights = each.cause == ReplicaCause::kValue && each.what == ReplicaKind::kParameter && differs_mostly(each);
      if (weights && each.arguments.empty() && !each.moved && each.tensor.graph == id && each.tensor.step == step + 1)
        explain(programs, step, each);
    }
  }

  void compare_types(const Place& place) {
    const auto type_of = [&](int rank) {
      const Node& node = session_.node(place.output(rank));
      return node.outputs.empty() ? DType::kUnknown : node.outputs[0].dtype;
    };
    const DType usual = type_of(place.programs.begin()->first);
    if (std::ranges::all_of(place.programs, [&](const auto& entry) { return type_of(entry.first) == usual; })) return;
    std::map<std::string, std::vector<int>> groups;
    for (const auto& [rank, program] : place.programs) {
      if (!is_float(type_of(rank))) return;
      groups[std::string(dtype_name(type_of(rank)))].push_back(rank);
    }
    if (const auto sides = two_sides(groups)) add(*sides, fmt::format("in {} instead of {}", sides->own, sides->theirs), place);
  }

  void compare_modes(const Place& place) {
    std::map<std::string, std::map<std::string, std::vector<int>>> groups;  // by argument
    for (const auto& [rank, program] : place.programs) {
      for (const Attribute& each : session_.arguments(place.output(rank))) {
        if (is_truth(each.value.get())) groups[each.name.get()][each.value.get()].push_back(rank);
      }
    }
    const std::string_view op = session_.node(place.output(place.programs.begin()->first)).op.get();
    for (const auto& [name, values] : groups) {
      const auto sides = two_sides(values);
      if (sides && sides->odd.size() + sides->others.size() == place.programs.size())
        return add(*sides, fmt::format("with {} = {} instead of {}", printable(argument_name(op, name)), sides->own, sides->theirs), place);
    }
  }

  // ---- numbers of the network ----

  /// An argument of a call, as the steps before had it.
  struct Number {
    std::string name;
    std::string usual;  // on most ranks
    std::optional<Sides> sides;
    TensorId own, other;
    std::vector<int64_t> steps;  // in which a rank has another one
    size_t seen = 0;             // steps
    bool varies = false;
  };

  /// A rank that runs the same calls with another number, such as an epsilon, from some step on. A number that changes otherwise is that of
  /// the data, as is one of calls that take other shapes on another rank.
  void compare_numbers(const Place& place) {
    const Node& node = session_.node(place.output(place.programs.begin()->first));
    if (!is_layer(node.name) && !is_arithmetic(node.op.get())) return;
    const auto shape_of = [&](int rank) {
      TensorId input = place.output(rank);
      input.slot = {Io::kInput, 0};
      const Result<TensorInfo> info = session_.describe(input);
      return info ? std::optional(info->shape) : std::nullopt;
    };
    std::map<std::string, std::map<std::string, std::vector<int>>> groups;  // by argument
    std::set<std::optional<Shape>> shapes;
    for (const auto& [rank, program] : place.programs) {
      for (const Attribute& each : session_.arguments(place.output(rank))) {
        if (is_fixed(each.name.get(), each.value.get())) groups[each.name.get()][each.value.get()].push_back(rank);
      }
      if (!groups.empty()) shapes.insert(shape_of(rank));
    }
    for (const auto& [name, values] : groups) {
      Number& number = numbers_[{node.name, name}];
      number.name = name;
      size_t ranks = 0;
      for (const auto& [value, of] : values) ranks += of.size();
      const std::optional<Sides> sides = two_sides(values);
      const std::string& usual = sides ? sides->theirs : values.begin()->first;
      const bool clear = shapes.size() == 1 && ranks == place.programs.size() && (sides || values.size() == 1);
      if (number.seen++ == 0) number.usual = usual;
      number.varies = number.varies || !clear || number.usual != usual || (number.sides && !sides);
      if (number.varies || !sides) continue;
      if (!number.sides) {
        number.sides = sides;
        number.own = place.output(sides->odd.front());
        number.other = place.output(sides->others.front());
      }
      number.varies = number.sides->odd != sides->odd || number.sides->own != sides->own;
      number.steps.push_back(place.step);
    }
  }

  void add_numbers() {
    std::vector<const Number*> all;
    for (const auto& [key, number] : numbers_) {
      if (!number.sides || number.varies || is_told(*number.sides)) continue;
      if (is_layer(key.first) || is_factor(number)) all.push_back(&number);
    }
    std::ranges::sort(all, {}, [&](const Number* each) { return std::pair(each->steps.front(), session_.node(each->own).order); });
    for (const Number* each : all) {
      const Sides& sides = *each->sides;
      const std::string_view name = argument_name(session_.node(each->own).op.get(), each->name);
      for (const int64_t step : each->steps)
        add(sides, fmt::format("with {} = {} instead of {}", printable(name), sides.own, sides.theirs), each->own, each->other, step);
    }
    numbers_.clear();
  }

  /// A difference of these ranks that names a number.
  bool is_told(const Sides& sides) const {
    return std::ranges::any_of(result_.differences, [&](const ReplicaDifference& each) {
      return each.odd == sides.odd && each.others == sides.others && !each.arguments.empty();
    });
  }

  /// A factor of one rank, such as the number of batches that its loss is divided by, in a training in which all do the same: where ranks
  /// have shards or stages, each may have its own.
  bool is_factor(const Number& number) const {
    bool weights = false;
    for (const ReplicaSet& set : result_.sets) {
      if (set.what != ReplicaKind::kParameter) continue;
      if (set.ranks != result_.ranks) return false;
      weights = true;
    }
    return weights && number.seen > 1 && number.sides->others.size() > 1;
  }

  void add(const Sides& sides, const std::string& how, const Place& place) {
    add(sides, how, place.output(sides.odd.front()), place.output(sides.others.front()), place.step);
  }

  void add(const Sides& sides, const std::string& how, const TensorId& own, const TensorId& other, int64_t step) {
    for (ReplicaDifference& each : found_) {
      if (each.odd != sides.odd || each.others != sides.others) continue;
      const auto at = std::ranges::lower_bound(each.steps, step);
      if (at == each.steps.end() || *at != step) each.steps.insert(at, step);
      const auto is_it = [&](const TensorId& known) { return known.graph == own.graph && known.node == own.node; };
      if (!is_it(each.tensor) && std::ranges::none_of(each.reached, is_it)) each.reached.push_back(own);
      return;
    }
    ReplicaDifference made;
    made.tensor = made.seen = own;
    made.expected = other;
    made.arguments = fmt::format("{} {}", printable(session_.node(own).op), how);
    put(sides, std::move(made), step);
  }

  void put(const Sides& sides, ReplicaDifference made, int64_t step) {
    made.cause = ReplicaCause::kCalls;
    made.what = ReplicaKind::kComputed;
    made.odd = sides.odd;
    made.others = sides.others;
    made.decided = sides.others.size() > sides.odd.size();
    made.called = made.tensor;
    made.steps = {step};
    found_.push_back(std::move(made));
  }

  // ---- compiled graphs ----

  /// One rank has the weights of the others, and other operators: another network.
  void compare_graphs(const std::map<int, const Graph*>& graphs, int id) {
    if (graphs.size() < 3 || graphs.size() != result_.ranks.size()) return;
    std::map<std::map<std::string_view, uint64_t>, std::vector<int>> groups;  // by the number of operators of each type
    std::set<std::map<std::string_view, std::optional<Shape>>> weights;
    for (const auto& [rank, graph] : graphs) {
      std::map<std::string_view, uint64_t> counts;
      std::map<std::string_view, std::optional<Shape>> own;
      for (const Node& node : graph->nodes()) {
        const bool weight = node.kind == NodeKind::kParameter && node.trainable && !node.outputs.empty();
        if (weight) own[node.name] = node.outputs[0].shape;
        if (node.kind == NodeKind::kOperator && !is_structural(node.op) && !collective_kind(node)) ++counts[node.op.get()];
      }
      groups[std::move(counts)].push_back(rank);
      weights.insert(std::move(own));
    }
    if (groups.size() != 2 || weights.size() != 1 || weights.begin()->empty()) return;
    auto odd = groups.begin(), others = std::next(odd);
    if (odd->second.size() > others->second.size()) std::swap(odd, others);
    if (odd->second.size() != 1) return;
    const auto lacks = [](const auto& counts, const auto& entry) {
      const auto at = counts.find(entry.first);
      return at == counts.end() || at->second < entry.second;
    };
    const auto beyond = [&](const auto& all, const auto& than) {
      std::vector<std::string_view> types;
      for (const auto& entry : all) {
        if (lacks(than, entry)) types.push_back(entry.first);
      }
      return types;
    };
    const std::vector<std::string_view> more = beyond(odd->first, others->first), fewer = beyond(others->first, odd->first);
    // A summary or a weight decay that one rank alone has shows in what it changes.
    if (fewer.empty()) return;
    const Graph &own = *graphs.at(odd->second.front()), &other = *graphs.at(others->second.front());
    ReplicaDifference made;
    for (const int64_t step : result_.steps) {
      if (std::ranges::binary_search(session_.steps(own.rank(), id), step)) made.steps.push_back(step);
    }
    if (made.steps.empty()) return;
    const auto first = [&](const Graph& graph, const std::vector<std::string_view>& types) {
      const auto order = graph.execution_order();
      const auto at = std::ranges::find_if(order, [&](NodeId node) {
        return types.empty() || std::ranges::count(types, std::string_view(graph.node(node).op.get())) > 0;
      });
      return TensorId{graph.rank(), id, made.steps.front(), 0, at == order.end() ? order.front() : *at, {}};
    };
    made.tensor = made.seen = first(own, more);
    made.expected = first(other, fewer);
    made.arguments = more.empty() ? "no " + listed(fewer) : fmt::format("{} instead of {}", listed(more), listed(fewer));
    const std::vector<int64_t> steps = made.steps;
    put({odd->second, others->second, "", ""}, std::move(made), steps.front());
    found_.back().steps = steps;
  }

  static std::string listed(const std::vector<std::string_view>& types) {
    constexpr size_t kMost = 3;
    std::string out;
    for (size_t i = 0; i < std::min(kMost, types.size()); ++i) out += fmt::format("{}{}", i == 0 ? "" : ", ", printable(types[i]));
    return types.size() <= kMost ? out : fmt::format("{} and {} more", out, types.size() - kMost);
  }

  // ---- weights of a rank that scaled its loss otherwise ----

  void explain(const Programs& programs, int64_t step, ReplicaDifference& made) {
    constexpr size_t kMost = 2000;  // in front of the optimizer
    const size_t calls = programs.begin()->second.calls.size();
    for (size_t at = calls; at-- > 0 && calls - at <= kMost;) {
      const Place place{programs, made.tensor.graph, step, &Program::calls, at};
      std::map<std::string, std::map<std::string, std::vector<int>>> groups;  // by argument
      for (const auto& [rank, program] : programs) {
        for (const auto& [name, value] : numbers(place.output(rank))) groups[name][value].push_back(rank);
      }
      for (const auto& [name, values] : groups) {
        const auto sides = two_sides(values);
        if (!sides || sides->odd != made.odd || sides->others != made.others) continue;
        made.called = place.output(made.odd.front());
        made.arguments = fmt::format("{} = {} instead of {}", printable(name), sides->own, sides->theirs);
        made.in_front = true;
        return;
      }
    }
  }

  /// Numbers that a call took: arguments, and tensors with one that no call made.
  std::map<std::string, std::string> numbers(const TensorId& call) {
    std::map<std::string, std::string> out;
    for (const Attribute& each : session_.arguments(call)) {
      if (parse_double(each.value.get())) out[each.name.get()] = each.value.get();
    }
    const Graph& graph = *session_.graph(call.rank, call.graph);
    for (uint32_t slot = 0; slot < graph.node(call.node).inputs.size(); ++slot) {
      TensorId input = call;
      input.slot = {Io::kInput, slot};
      if (graph.effective_producer(call.node, slot).node != kNoNode) continue;
      if (const auto number = number_at(session_, input)) out[slot_name(input.slot)] = format_short(*number, 9);
    }
    return out;
  }

  // ---- fewer passes ----

  /// In one step, a rank ran each part of the network fewer times, and as often as the others in all other steps, a later one among them.
  void find_fewer(const std::map<int64_t, Programs>& steps, int id) {
    const auto even = [](const Programs& programs) {
      return std::ranges::all_of(programs, [&](const auto& entry) { return entry.second.counts == programs.begin()->second.counts; });
    };
    const auto uneven = std::ranges::find_if_not(steps, [&](const auto& entry) { return even(entry.second); });
    if (uneven == steps.end() || std::next(uneven) == steps.end()) return;
    const auto& [step, programs] = *uneven;
    const auto usual = [&](const auto& entry) {
      return entry.first == step || (even(entry.second) && entry.second.size() == programs.size());
    };
    if (!std::ranges::all_of(steps, usual)) return;
    const auto& counts = std::next(uneven)->second.begin()->second.counts;
    Sides sides;
    for (const auto& [rank, program] : programs) (program.counts == counts ? sides.others : sides.odd).push_back(rank);
    if (sides.odd.size() != 1 || sides.others.empty()) return;
    const auto& own = programs.at(sides.odd.front()).counts;
    uint64_t passes = 0, ran = 0, of = 0, fewer = 0;
    for (const auto& [op, usually] : counts) {
      const auto at = own.find(op);
      const uint64_t now = at == own.end() ? 0 : at->second;
      if (now == usually) continue;
      if (now > usually || (of > 0 && now * of != ran * usually)) return;
      ran = now;
      of = usually;
      passes = std::gcd(passes, usually);
      ++fewer;
    }
    if (own.size() > counts.size() || ran == 0 || 2 * fewer <= counts.size() || passes * ran % of != 0) return;
    ReplicaDifference made;
    const Graph& graph = *programs.at(sides.odd.front()).graph;
    const Graph& other = *programs.at(sides.others.front()).graph;
    for (const NodeId call : graph.execution_order()) {
      const Node& node = graph.node(call);
      const Node* const same = other.find(node.name);
      if (node.role != CallRole::kForward || same == nullptr || session_.executions(graph.rank(), id, step, call) == 0) continue;
      made.tensor = made.seen = {graph.rank(), id, step, 0, call, {}};
      made.expected = {other.rank(), id, step, 0, same->id, {}};
      break;
    }
    if (made.tensor.node == kNoNode) return;
    made.arguments = fmt::format("{} passes instead of {}", passes * ran / of, passes);
    put(sides, std::move(made), step);
    found_.back().decided = true;  // it ran as many in all other steps
  }

  Session& session_;
  ReplicasResult& result_;
  std::vector<ReplicaDifference> found_;
  std::map<std::pair<std::string, std::string>, Number> numbers_;  // by call and argument, of one graph
};

}  // namespace

void find_other_programs(Session& session, ReplicasResult* result) { ProgramFinder(session, *result).run(); }

}  // namespace msdbg
