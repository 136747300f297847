// Why a tensor has no value.
#include "analysis/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace msdbg {

std::string_view why_kind_name(WhyKind kind) {
  constexpr std::string_view kNames[] = {"has_value",      "statistics_only",      "unreadable",    "over_limit",
                                         "no_such_step",   "iteration_not_dumped", "graph_not_run", "not_executed",
                                         "kernels_filter", "input_output_filter",  "structural",    "inline_constant",
                                         "no_such_slot",   "no_such_execution",    "fused",         "optimised_away",
                                         "missing_file",   "never_existed"};
  return kNames[static_cast<size_t>(kind)];
}

namespace {

/// File systems refuse longer file names rather than truncate them.
constexpr size_t kLongestFileName = 255, kRestOfFileName = 60;

/// The reason from describe(), without the words that repeat the question.
std::string without_prefix(const std::string& message) {
  constexpr std::string_view kPrefix = "not dumped: ";
  return message.starts_with(kPrefix) ? message.substr(kPrefix.size()) : message;
}

class Why {
 public:
  Why(Session& session, const WhyOptions& options, const TensorId& id, WhyAnswer& answer)
      : session_(session),
        options_(options),
        id_(id),
        graph_(*session.graph(id.rank, id.graph)),
        node_(graph_.node(id.node)),
        answer_(answer) {
    answer_.tensor = id;
    if (session_.info().kind == SessionKind::kDump) directory_ = rank_directory(session_, graph_);
    settings_ = read_settings(directory_);
  }

  void explain() {
    const Result<TensorInfo> info = session_.describe(id_);
    if (info) return explain_value(*info);
    if (graph_.recorded_calls()) return explain_call(info.status());
    const std::vector<int64_t> steps = session_.steps(id_.rank, id_.graph), all = session_.steps();
    if (!std::binary_search(steps.begin(), steps.end(), id_.step)) return explain_step(steps, all);
    if (is_structural(node_.op)) {
      return conclude(WhyKind::kStructural,
                      fmt::format("{} only orders or groups values; it has none of its own and is never dumped", node_.op),
                      graph_.source_path());
    }
    const uint32_t executions = session_.executions(id_.rank, id_.graph, id_.step, id_.node);
    if (executions > 0 && id_.execution >= executions) {
      return conclude(
          WhyKind::kNoSuchExecution,
          fmt::format("it ran {} times in step {} (executions 0 to {}), not {}", executions, id_.step, executions - 1, id_.execution + 1),
          "");
    }
    const std::vector<TensorId> here = tensors_in(id_.step);
    if (!here.empty()) return explain_slot(here, info.status());
    std::vector<int64_t> others;
    for (const int64_t step : steps) {
      if (step != id_.step && !tensors_in(step).empty()) others.push_back(step);
    }
    if (!others.empty()) return explain_not_executed(others);
    explain_never(info.status());
  }

 private:
  void conclude(WhyKind kind, std::string answer, const std::string& path, std::string evidence = "") {
    answer_.kind = kind;
    answer_.answer = std::move(answer);
    if (!path.empty() || !evidence.empty()) answer_.evidence.push_back({std::move(evidence), path});
  }
  void add(std::string text, std::string path = "") { answer_.evidence.push_back({std::move(text), std::move(path)}); }

  /// All slots of the node in a step.
  std::vector<TensorId> tensors_in(int64_t step) {
    const std::vector<NodeRef> one = {{&graph_, id_.node}};
    TensorQuery query;
    query.ranks = IntSet::of(id_.rank);
    query.steps = IntSet::of(step);
    query.graph = id_.graph;
    query.nodes = &one;
    query.inputs = true;
    return session_.tensors(query);
  }

  void explain_value(const TensorInfo& info) {
    if (info.availability == Availability::kUnreadable || !info.problem.ok()) {
      conclude(WhyKind::kUnreadable, fmt::format("unreadable: {}", info.problem.message()), info.source, "the file");
      return;
    }
    if (info.availability == Availability::kStatisticsOnly) {
      conclude(WhyKind::kStatisticsOnly, "only its statistics were dumped, no elements", info.source, "the line of the statistics");
      if (!settings_.path.empty() && !settings_.saved_data.empty())
        add(fmt::format("saved_data is \"{}\"", settings_.saved_data), settings_.path);
      answer_.next = graph_.recorded_calls() ? "set \"task\" to \"tensor\" in msprobe's config.json; the command plan writes one"
                                             : "set saved_data to \"tensor\" or \"full\" in the dump configuration";
      return;
    }
    // A header may promise more than the file contains; only reading shows that.
    if (const Result<Stats> stats = session_.stats(id_); !stats) {
      conclude(WhyKind::kUnreadable, fmt::format("unreadable: {}", stats.status().message()), info.source, "the file");
      return;
    }
    if (info.bytes > options_.mem_limit_bytes) {
      conclude(WhyKind::kOverLimit,
               fmt::format("its elements are {}, more than the limit of {}; statistics and conditions work, "
                           "a view of all elements does not",
                           format_bytes(info.bytes), format_bytes(options_.mem_limit_bytes)),
               info.source, "the file");
      answer_.next = "raise --mem-limit";
      return;
    }
    conclude(WhyKind::kHasValue, fmt::format("it has a value in step {}: {}{}", id_.step, dtype_name(info.dtype), shape_text(info.shape)),
             info.source, session_.can_step() ? "the training" : "the file");
    if (!info.note.empty()) add(info.note, info.source);
    if (const Result<Stats> stats = session_.stats(id_); stats && stats->nan_count + stats->inf_count() > 0) {
      add(fmt::format("{} of {} elements are NaN or Inf", stats->nan_count + stats->inf_count(), stats->count));
      answer_.next = "propagation with --up shows where they came from";
    }
  }

  /// Calls that a tool recorded: what is missing was not recorded, and the compiler had no part in it.
  void explain_call(const Status& status) {
    const std::vector<int64_t> steps = session_.steps(id_.rank, id_.graph);
    const std::vector<TensorId> here = tensors_in(id_.step);
    const bool step = std::binary_search(steps.begin(), steps.end(), id_.step);
    const WhyKind kind = !step ? WhyKind::kNoSuchStep : here.empty() ? WhyKind::kNotExecuted : WhyKind::kNoSuchSlot;
    conclude(kind, without_prefix(status.message()), "");
    if (!step) return add("msprobe records the steps of \"step\" in its config.json, or all");
    if (!here.empty()) {
      std::string slots;
      for (const TensorId& each : here) slots += (slots.empty() ? "" : ", ") + slot_name(each.slot);
      add(fmt::format("recorded of this call: {}", slots), session_.identify(here.front()).source);
      if (id_.slot.io == Io::kOutput) add("a call that raised an exception has no output, nor has one with \"data_mode\": [\"input\"]");
      else add("\"data_mode\" may leave inputs out; arguments that are no tensors are attributes");
      return;
    }
    for (const int64_t other : steps) {
      if (tensors_in(other).empty()) continue;
      answer_.next = fmt::format("look at step {}", other);
      break;
    }
    add("counts of calls begin anew in each step: another branch of the program, or one more call before it, gives other names");
  }

  void explain_step(const std::vector<int64_t>& steps, const std::vector<int64_t>& all) {
    const GraphHistory history = read_history(directory_, id_.graph);
    const bool ran = std::binary_search(history.steps.begin(), history.steps.end(), id_.step);
    const bool in_dump = std::binary_search(all.begin(), all.end(), id_.step);
    if (settings_.wants_step(id_.step) == false) {
      conclude(WhyKind::kIterationNotDumped,
               fmt::format("step {} was not dumped: the configuration asks for iterations \"{}\"", id_.step, settings_.iteration),
               settings_.path, fmt::format("iteration is \"{}\"", settings_.iteration));
      answer_.next = fmt::format("add {} to \"iteration\" in the dump configuration", id_.step);
    } else if (ran) {
      // Files that the configuration requested and the history lists should exist.
      const std::string have =
          steps.empty() ? "of no step" : fmt::format("only of {} {}", steps.size() == 1 ? "step" : "steps", numbers_text(steps));
      conclude(WhyKind::kMissingFile,
               fmt::format("graph {} ran in step {}, but its files are missing: the dump has them {}", id_.graph, id_.step, have),
               directory_, "iteration directories");
    } else if (in_dump) {
      conclude(WhyKind::kGraphNotRun,
               steps.empty() ? fmt::format("graph {} did not run in step {}, nor in any other", id_.graph, id_.step)
                             : fmt::format("graph {} did not run in step {}; it ran in steps {}", id_.graph, id_.step, numbers_text(steps)),
               "");
      std::vector<int64_t> graphs;
      for (const GraphPtr& graph : session_.graphs()) {
        const std::vector<int64_t> own = session_.steps(graph->rank(), graph->id());
        if (graph->rank() == id_.rank && std::binary_search(own.begin(), own.end(), id_.step)) graphs.push_back(graph->id());
      }
      const std::string held = graphs.empty() ? "no graph" : (graphs.size() == 1 ? "graph " : "graphs ") + numbers_text(graphs);
      add(fmt::format("in step {} the dump holds {}", id_.step, held), directory_);
    } else {
      conclude(WhyKind::kNoSuchStep, fmt::format("the dump has no step {}; it has steps {}", id_.step, numbers_text(all)), directory_,
               "iteration directories");
    }
    if (!history.path.empty() && !ran) add(fmt::format("its history lists runs in steps {}", numbers_text(history.steps)), history.path);
    if (ran) add(fmt::format("its history says that it ran in step {}", id_.step), history.path);
    if (steps.empty()) add(fmt::format("graph {} has no data in any step", id_.graph), graph_.source_path());
  }

  void explain_slot(const std::vector<TensorId>& here, const Status& status) {
    std::string slots;
    for (const TensorId& each : here) {
      if (each.execution == here.front().execution) slots += (slots.empty() ? "" : ", ") + slot_name(each.slot);
    }
    const bool input = id_.slot.io == Io::kInput;
    if (settings_.input_output == (input ? 2 : 1)) {
      conclude(WhyKind::kInputOutputFilter,
               fmt::format("{} were not dumped: input_output is {}", input ? "inputs" : "outputs", *settings_.input_output), settings_.path,
               fmt::format("input_output is {}, which means {} only", *settings_.input_output, input ? "outputs" : "inputs"));
      answer_.next = "set input_output to 0 in the dump configuration";
    } else {
      conclude(WhyKind::kMissingFile, status.message(), folder_of(here.front()), "the step's directory");
    }
    add(fmt::format("dumped of this node: {}", slots), folder_of(here.front()));
    if (!input) return;
    const Edge edge = graph_.effective_producer(id_.node, id_.slot.index);
    if (edge.node == kNoNode) return;
    const Node& producer = graph_.node(edge.node);
    if (!carries_value(graph_, edge)) {
      conclude(WhyKind::kStructural, fmt::format("{} only orders the run: it carries no value", slot_name(id_.slot)), graph_.source_path());
      return;
    }
    if (producer.kind == NodeKind::kConstant && !producer.constant_value.empty()) {
      add(fmt::format("it takes the constant {} = {}, which the graph holds inline", producer.name, producer.constant_value),
          graph_.source_path());
    }
    answer_.instead = {fmt::format("{}:{}", producer.name, slot_name({Io::kOutput, edge.slot}))};
  }

  std::string folder_of(const TensorId& id) {
    const Result<TensorInfo> info = session_.describe(id);
    return info ? std::filesystem::path(info->source).parent_path().string() : directory_;
  }

  void explain_not_executed(const std::vector<int64_t>& others) {
    conclude(WhyKind::kNotExecuted,
             fmt::format("not executed in step {}: graph {} ran then, but this node wrote nothing; it did in steps {}", id_.step, id_.graph,
                         numbers_text(others)),
             "");
    std::string path;
    if (listed_at(directory_, graph_, node_, &path)) add("the execution order of its graph lists it", path);
    answer_.next = fmt::format("look at step {}", others.front());
  }

  void explain_never(const Status& status) {
    std::string path;
    const std::optional<size_t> place = listed_at(directory_, graph_, node_, &path);
    const bool value = node_.kind != NodeKind::kOperator;
    if (node_.kind == NodeKind::kConstant && !node_.constant_value.empty()) {
      conclude(WhyKind::kInlineConstant, fmt::format("a constant whose value the graph holds inline: {}", node_.constant_value),
               graph_.source_path());
    } else if (settings_.dump_mode == 1 && !settings_.names(graph_, node_)) {
      conclude(WhyKind::kKernelsFilter,
               fmt::format("not dumped by the configuration: dump_mode 1 writes only the {} listed kernels, and this is not one of them",
                           settings_.kernels.size()),
               settings_.path, fmt::format("kernels: {}", fmt::join(settings_.kernels, ", ")));
      if (const std::string near = settings_.other_number(node_); !near.empty())
        add(fmt::format("\"{}\" is listed; since 2.7 the numbers after -op are those of the files, not of the graph", near),
            settings_.path);
      answer_.next = fmt::format("add \"{}\" to \"kernels\", or set dump_mode to 0", node_.name);
    } else if (settings_.dump_mode == 2) {
      conclude(WhyKind::kKernelsFilter, "not dumped by the configuration: dump_mode 2 writes only cells marked with set_dump",
               settings_.path, "dump_mode is 2");
    } else if (value && settings_.input_output == 1) {
      conclude(WhyKind::kInputOutputFilter, "not dumped by the configuration: input_output 1 writes neither parameters nor constants",
               settings_.path, "input_output is 1");
      answer_.next = "set input_output to 0 or 2 in the dump configuration";
    } else if (settings_.op_debug_mode.value_or(0) != 0 && session_.info().device_target != "CPU") {
      conclude(WhyKind::kKernelsFilter, "only operators that overflowed were dumped", settings_.path,
               fmt::format("op_debug_mode is {}", *settings_.op_debug_mode));
    } else {
      conclude(WhyKind::kMissingFile, fmt::format("no file: {}", without_prefix(status.message())), directory_, "searched");
      if (node_.name.size() + kRestOfFileName > kLongestFileName) {
        add(fmt::format("its name has {} bytes: the file name would be longer than the {} that file systems take, and some releases then "
                        "write nothing",
                        node_.name.size(), kLongestFileName),
            directory_);
      }
    }
    if (place)
      add(fmt::format("the execution order lists it at place {}", *place), path);
    else if (!path.empty() && node_.kind == NodeKind::kOperator)
      add("the execution order of its graph does not list it: the kernel is not launched", path);
    // The inputs recorded by consumers have the same value.
    for (const Use& use : graph_.effective_users(id_.node)) {
      TensorId taken = id_;
      taken.node = use.node;
      taken.slot = {Io::kInput, use.slot};
      taken.execution = 0;
      if (id_.slot.io == Io::kInput || use.output_slot != id_.slot.index || !session_.exists(taken)) continue;
      answer_.instead.push_back(session_.tensor_name(taken));
      if (answer_.instead.size() == 3) break;
    }
    if (!answer_.instead.empty())
      add(fmt::format("a consumer's recorded input holds the same value: {}", answer_.instead.front()), graph_.source_path());
  }

  Session& session_;
  const WhyOptions& options_;
  TensorId id_;
  const Graph& graph_;
  const Node& node_;
  WhyAnswer& answer_;
  std::string directory_;
  DumpSettings settings_;
};

/// NODE without its slot.
std::string_view node_part(std::string_view text) {
  for (size_t colon = text.rfind(':'); colon != std::string_view::npos && colon > 0; colon = text.rfind(':', colon - 1)) {
    if (parse_slot(text.substr(colon + 1))) {
      const size_t before = text.rfind(':', colon - 1);
      if (before != std::string_view::npos && parse_slot(text.substr(before + 1))) return text.substr(0, before);
      return text.substr(0, colon);
    }
  }
  return text;
}

}  // namespace

Result<WhyAnswer> why(Session& session, std::string_view text, const WhyOptions& options) {
  WhyAnswer answer;
  answer.asked = std::string(trim(text));
  const std::string_view name = node_part(answer.asked);
  const std::vector<int64_t> ranks(session.ranks().begin(), session.ranks().end());
  if (options.rank && std::find(ranks.begin(), ranks.end(), *options.rank) == ranks.end())
    return Status(Code::kNotFound, fmt::format("no rank {} (have {})", *options.rank, numbers_text(ranks)));
  const Result<NodeRef> found = find_node(session.graphs(), name, options.rank, options.graph);
  if (!found && found.status().code() == Code::kInvalidArgument) return found.status();
  if (!found) {
    WhyAnswer absent = explain_absent_name(session, name, options);
    absent.asked = answer.asked;
    return absent;
  }
  const std::vector<int64_t> own = session.steps(found->graph->rank(), found->graph->id()), all = session.steps();
  const int64_t step = options.step ? *options.step : !own.empty() ? own.front() : !all.empty() ? all.front() : 0;
  const Result<TensorId> id = resolve_tensor(session, answer.asked, step, options.rank, options.graph, options.execution);
  if (!id) {
    if (id.status().code() == Code::kInvalidArgument) return id.status();
    answer.kind = WhyKind::kNoSuchSlot;
    answer.answer = id.status().message();
    answer.evidence.push_back({"the graph", found->graph->source_path()});
    return answer;
  }
  Why(session, options, *id, answer).explain();
  explain_ranks(session, *id, answer);
  return answer;
}

}  // namespace msdbg
