// msdbg plan: the dump configuration for the next run.
#include <fmt/format.h>

#include "app/follow_command.h"
#include "msdbg/dump_plan.h"
#include "msdbg/wire.h"

namespace msdbg::app {
namespace {

struct PlanWords {
  std::string selector, around, mode = "auto", slots = "both", path = DumpPlanOptions().path, net, version;
  int hops = 2;
  bool described = false;
};

/// The graphs to plan for, and what their run recorded about itself.
struct Source {
  std::vector<GraphPtr> graphs;
  SessionInfo info;
};

bool is_graph_file(const std::string& path) { return path.size() > 3 && path.compare(path.size() - 3, 3, ".pb") == 0; }

Result<Source> open_source(Context& context) {
  const std::string& path = context.options().dump;
  Source source;
  if (is_graph_file(path)) {
    std::vector<std::string> notes;
    auto graph = read_graph_file(path, 0, 0, &notes);
    if (!graph) return graph.status();
    source.graphs.push_back(graph->build());
    return source;
  }
  if (is_checkpoint(path)) {
    return Status(Code::kInvalidArgument,
                  fmt::format("plan: {} is a checkpoint, which has no graph; give a dump directory or a graph file (*.pb)", path));
  }
  const auto session = context.session();
  if (!session) return session.status();
  const auto graphs = (*session)->graphs();
  source.graphs.assign(graphs.begin(), graphs.end());
  source.info = (*session)->info();
  return source;
}

Result<std::vector<NodeRef>> choose(const PlanWords& words, std::span<const GraphPtr> graphs) {
  if (!words.around.empty()) {
    const auto centre = find_node(graphs, words.around);
    if (!centre) return centre.status();
    return nodes_around(*centre->graph, centre->node, words.hops);
  }
  const auto selector = Selector::parse(words.selector.empty() ? "**" : words.selector);
  if (!selector) return selector.status();
  return resolve_or_explain(*selector, graphs);
}

DumpPlanOptions plan_options(const PlanWords& words, const Options& options, const SessionInfo& info) {
  // A first look needs statistics of everything, not elements.
  DumpPlanOptions plan = plan_options_of(info, words.selector.empty() && words.around.empty());
  plan.steps = options.steps;
  plan.path = words.path;
  if (!words.version.empty()) plan.version = words.version;
  if (!words.net.empty()) plan.net_name = words.net;
  plan.slots = words.slots == "inputs" ? DumpedSlots::kInputs : words.slots == "outputs" ? DumpedSlots::kOutputs : DumpedSlots::kBoth;
  if (words.mode == "tensor") plan.saved = SavedData::kTensor;
  if (words.mode == "statistic") plan.saved = SavedData::kStatistic;
  if (words.mode == "full") plan.saved = SavedData::kFull;
  return plan;
}

std::string summary(const DumpPlan& plan) {
  const std::string size =
      !plan.size_known() ? "an unknown number of bytes" : (plan.unknown_sizes > 0 ? "at least " : "") + format_bytes(plan.bytes_per_step);
  std::string out =
      fmt::format("{}{} node{}, {} file{} and {} a step", plan.everything ? "all " : "", plan.nodes, plan.nodes == 1 ? "" : "s",
                  plan.files_per_step, plan.files_per_step == 1 ? "" : "s", size);
  if (plan.steps && !plan.size_known()) {
    out += fmt::format(", in {} step{}", *plan.steps, *plan.steps == 1 ? "" : "s");
  } else if (plan.steps) {
    out += fmt::format(", {} in {} step{}", format_bytes(plan.bytes_per_step * *plan.steps), *plan.steps, *plan.steps == 1 ? "" : "s");
  } else {
    out += ", in every step: --steps 0:10 sets a limit";
  }
  if (plan.left_out > 0) out += fmt::format("; {} chosen nodes never have a value", plan.left_out);
  return out;
}

Result<int> run_plan(const PlanWords& words, Context& context) {
  const Options& options = context.options();
  auto source = open_source(context);
  if (!source) return source.status();
  const auto nodes = choose(words, source->graphs);
  if (!nodes) return nodes.status();
  const DumpPlanOptions asked = plan_options(words, options, source->info);
  const auto plan = plan_dump(source->graphs, *nodes, asked);
  if (plan && plan->tool == PlanTool::kMsprobe && (!words.net.empty() || !words.version.empty())) {
    return Status(Code::kInvalidArgument, "plan: --net-name and --ms-version are for dumps of MindSpore itself; msprobe has neither");
  }
  if (!plan) return plan.status();
  if (const Status written = context.write(words.described ? plan_json(*plan) : plan->json); !written.ok()) return written;
  context.note(summary(*plan));
  for (const std::string& note : plan->notes) context.note("note: " + note);
  if (options.output_file.empty()) {
    context.note(fmt::format("next: write it into a file with -o {}.json", plan->tool == PlanTool::kMsprobe ? "config" : "dump"));
  } else {
    const std::string file = (options.output_file.front() == '/' ? "" : "$PWD/") + options.output_file;
    if (plan->tool == PlanTool::kMsprobe) {
      context.note(fmt::format("next: PrecisionDebugger(config_path=\"{}\") in the training program; the dump will be in {}",
                               options.output_file, asked.path));
    } else {
      context.note(
          fmt::format("next: export MINDSPORE_DUMP_CONFIG={} before the training starts; the dump will be in {}", file, asked.path));
    }
  }
  return kExitClean;
}

Action declare_plan(const Declaration& to) {
  auto words = std::make_shared<PlanWords>();
  CLI::App& app = to.app;
  add_selector(app, &words->selector, "SEL", "nodes to dump; default: everything, as statistics where the device can");
  app.add_option("--around", words->around, "instead: this node and its neighbours")->type_name("NODE")->excludes(app.get_option("SEL"));
  app.add_option("--hops", words->hops, "how far --around goes")->capture_default_str()->check(CLI::Range(0, 1000))->type_name("N");
  app.add_option("--mode", words->mode, "auto, tensor, statistic or full")
      ->capture_default_str()
      ->type_name("WHAT")
      ->check(CLI::IsMember({"auto", "tensor", "statistic", "full"}));
  app.add_option("--slots", words->slots, "both, inputs or outputs")
      ->capture_default_str()
      ->type_name("WHICH")
      ->check(CLI::IsMember({"both", "inputs", "outputs"}));
  app.add_option("--path", words->path, "where the run is to write the dump")->capture_default_str()->type_name("DIR");
  app.add_option("--net-name", words->net, "the directory below the path; default: as in the dump")->type_name("NAME");
  app.add_option("--ms-version", words->version, "MindSpore that will run; default: that of the dump")->type_name("V");
  app.add_option("-o,--output", to.options.output_file, "write to FILE instead of printing")->type_name("FILE");
  app.add_flag("--describe", words->described, "JSON of the plan and its cost instead of the configuration alone");
  return [words](Context& context) { return run_plan(*words, context); };
}

}  // namespace

CommandEntry plan_command() {
  return {.name = "plan",
          .group = kResultGroup,
          .summary = "the dump configuration of the next run, with its cost",
          .examples = {{"@gradient --steps 0:10 -o dump.json"}, {"--around Log-op0 --hops 2", "a node and its neighbours"}},
          .declare = declare_plan,
          .first_help = "dump directory, or a graph file (*.pb)",
          .steps = StepsWord::kAll,
          .formats = "",
          .selectors = true,
          .complete = "selector"};
}

}  // namespace msdbg::app
