// msdbg show: shows one tensor.
#include <fmt/format.h>

#include <algorithm>

#include "app/follow_command.h"
#include "app/live.h"
#include "app/tensor_word.h"
#include "msdbg/histogram_report.h"
#include "msdbg/table.h"

namespace msdbg::app {
namespace {

constexpr size_t kElementsWidth = 140;  // for a table of elements in a file or a pipe

struct ShowWords {
  std::string tensor, slice, sort;
  uint32_t execution = 0;
  size_t bins = 0, rows = 20;
  bool previous = false;
};

// The first requested step and rank in which the node's graph has data and the tensor exists.
Result<TensorId> find_shown(const ShowWords& words, const Options& options, Session& session) {
  Status last(Code::kNotFound,
              fmt::format("no data for step {}; have steps {}", options.steps.text(), numbers_text(session.steps())));
  for (const int rank : session.ranks()) {
    if (!options.ranks.contains(rank)) continue;
    for (const int64_t step : session.steps()) {
      if (!options.steps.contains(step)) continue;
      auto id = resolve_tensor(session, words.tensor, step, rank, options.graph, words.execution);
      if (!id) {
        last = id.status();
        // A wrong name is wrong in every step.
        if (last.code() == Code::kInvalidArgument || last.code() == Code::kNotFound) return last;
        continue;
      }
      const auto info = session.describe(*id);
      if (info) return id;
      last = info.status();
      const NodeRef shown{session.graph(id->rank, id->graph), id->node};
      if (const Status why = keep_for_next_step(session, {&shown, 1}); !why.ok()) last = why;
    }
  }
  return last;
}

std::string source_line(const Node& node) {
  const StackFrame* frame = user_frame(node);
  if (frame == nullptr) return "";
  return fmt::format("  source   {}:{}   {}\n", printable(frame->file), frame->line, printable(frame->code));
}

// The Lua library shows elements next to those of the previous step.
Result<int> show_with_previous(const ShowWords& words, const TensorId& id, Context& context) {
  Session& session = **context.session();
  const auto script = context.script();
  if (!script) return script.status();
  std::vector<std::string> asked{"tensor=" + session.tensor_name(id), fmt::format("step={}", id.step), fmt::format("rank={}", id.rank),
                                 fmt::format("graph={}", id.graph), fmt::format("execution={}", id.execution),
                                 fmt::format("rows={}", words.rows)};
  if (!words.slice.empty()) asked.push_back("slice=" + words.slice);
  if (!words.sort.empty()) asked.push_back("sort=" + words.sort);
  const auto answer = (*script)->call("msdbg.previous_values", "main", asked);
  if (!answer) return answer.status();
  if (const Status written = context.write(answer->text); !written.ok()) return written;
  return kExitClean;
}

Result<int> run_show(const ShowWords& words, Context& context) {
  const Options& options = context.options();
  if (!words.sort.empty() && !words.previous)
    return Status(Code::kInvalidArgument, "show: --sort orders the elements of --previous; worst lists the largest elements");
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  const auto id = find_shown(words, options, session);
  if (!id) return id.status();
  auto info = session.describe(*id);
  if (!info) return info.status();
  StatsRow row{std::move(*info), std::nullopt};
  if (row.info.problem.ok()) {
    auto stats = session.stats(*id);
    if (stats) row.stats = std::move(*stats);
    else row.info.problem = stats.status();
  }
  const ReportStyle style = context.style();
  if (words.previous) return show_with_previous(words, *id, context);
  if (options.format != Format::kTable) {
    if (const Status written = context.write(stats_report(session, {row}, style)); !written.ok()) return written;
    return row.stats ? kExitClean : kExitInput;
  }

  const Node& node = session.node(*id);
  std::string out = fmt::format("{}  {}{}  step {}", name_within(session, *id, ":" + slot_name(id->slot), 0, style),
                                dtype_name(row.info.dtype), shape_text(row.info.shape), id->step);
  if (session.ranks().size() > 1) out += fmt::format("  rank {}", id->rank);
  const uint32_t executions = session.executions(id->rank, id->graph, id->step, id->node);
  if (executions > 1) out += fmt::format("  execution {} of {}", id->execution, executions);
  out += node.kind == NodeKind::kOperator ? fmt::format("\n  operator {}\n", printable(node.op))
                                          : fmt::format("\n  kind     {}\n", node_kind_name(node.kind));
  out += source_line(node);
  out += fmt::format("  file     {}\n", printable(row.info.source));
  if (!row.info.note.empty()) out += fmt::format("  note     {}\n", printable(row.info.note));
  if (row.stats) out += fmt::format("  values   {}\n", stats_line(*row.stats));

  Status problem = row.info.problem;
  if (row.info.availability == Availability::kElements && problem.ok()) {
    auto tensor = session.load(*id, options.mem_limit_mb << 20);
    if (tensor && !words.slice.empty()) tensor = slice((*tensor)->view(), words.slice);
    if (!tensor) return tensor.status();
    const TensorView view = (*tensor)->view();
    if (!words.slice.empty()) {
      out += fmt::format("  slice    [{}] {}  {}\n", words.slice, shape_text(view.shape), stats_line(compute_stats(view)));
    }
    out += elements_table(view, words.rows, std::min(style.width, kElementsWidth));
    if (words.bins > 0) {
      const auto bars = histogram(view, BinOptions{.bins = words.bins});
      if (!bars) return bars.status();
      out += histogram_text(*bars);
    }
  } else if (problem.ok()) {
    out += "  elements are not in the dump, only these statistics\n";
  }
  if (const Status written = context.write(fitted(std::move(out), style)); !written.ok()) return written;
  if (!problem.ok()) return problem;
  return kExitClean;
}

Action declare_show(const Declaration& to) {
  auto words = std::make_shared<ShowWords>();
  CLI::App& app = to.app;
  app.add_option("TENSOR", words->tensor, "NODE, NODE:0, NODE:input:1 with a slice such as [0:2,:]; NODE may be the end of the name")
      ->required();
  add_graph(to);
  app.add_option("--execution", words->execution, "which run within the step (loop bodies)")->type_name("N")->check(CLI::NonNegativeNumber);
  app.add_option("--slice", words->slice, "a slice of it, e.g. 0:2,:,3")->type_name("SLICE");
  app.add_option("--bins", words->bins, "number of bins of the histogram")->type_name("N")->check(CLI::NonNegativeNumber);
  app.add_option("--rows", words->rows, "maximum number of lines of elements")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--previous", words->previous, "next to the value of the previous step");
  app.add_option("--sort", words->sort, "with --previous: place, value or difference")
      ->type_name("HOW")
      ->check(CLI::IsMember({"place", "value", "difference"}));
  return [words](Context& context) -> Result<int> {
    if (const Status sliced = take_slice("show", &words->tensor, &words->slice); !sliced.ok()) return sliced;
    return run_show(*words, context);
  };
}

}  // namespace

CommandEntry show_command() {
  return {.name = "show",
          .also = {"pt"},
          .group = kTensorGroup,
          .summary = "one tensor: statistics, source line, elements, histogram",
          .examples = {{"Log-op0", "output 0, first step"},
                       {"Log-op0:input:0[0:2,:] --step 1"},
                       {"conv1.weight --bins 20"},
                       {"conv1.weight --step 1 --previous --sort difference"}},
          .declare = declare_show,
          .steps = StepsWord::kCurrent,
          .formats = "table, json, jsonl, csv or markdown",
          .last_format = Format::kMarkdown,
          .complete = "tensor"};
}

}  // namespace msdbg::app
