// msdbg propagation: how a bad tensor spread in its step, or where it came from.
#include <fmt/format.h>

#include "app/follow_command.h"

namespace msdbg::app {
namespace {

struct Words {
  std::string dump, tensor, when = "nan or inf", format = "table", output;
  int graph = -1;
  uint32_t execution = 0;
  bool up = false, wide = false;
};

Result<Format> text_format(const std::string& word) {
  if (word == "svg" || word == "dot") return Format::kTable;  // a picture; the table is not used
  Result<Format> format = parse_format(word);
  if (format && *format != Format::kCsv && *format <= Format::kMarkdown) return format;
  return Status(Code::kInvalidArgument,
                fmt::format("--format {} is not for this command; use table, json, jsonl, markdown, dot or svg", word));
}

/// In the first step asked for where the tensor is there and bad; else in the first where it is there.
Result<TensorId> find_tensor(const Words& words, const Options& options, Session& session, const Predicate& predicate) {
  const std::optional<int> graph = words.graph < 0 ? std::nullopt : std::optional(words.graph);
  std::optional<TensorId> there;
  Status last(Code::kNotFound, fmt::format("no data for step {}; have steps {}", options.steps.text(), numbers_text(session.steps())));
  const FollowOptions follow = follow_options(options);
  for (const int rank : session.ranks()) {
    if (!options.ranks.contains(rank)) continue;
    for (const int64_t step : session.steps()) {
      if (!options.steps.contains(step)) continue;
      const auto id = resolve_tensor(session, words.tensor, step, rank, graph, words.execution);
      if (!id) return id.status();
      const auto info = session.describe(*id);
      if (!info) {
        last = info.status();
        continue;
      }
      if (!there) there = *id;
      const auto target = follow_target(session, words.tensor, IntSet::of(rank), id->graph);
      if (!target) return target.status();
      FollowOptions one = follow;
      one.steps = IntSet::of(step);
      one.ranks = IntSet::of(rank);
      const auto found = bisect(session, *target, predicate, one);
      if (!found) continue;
      for (const BisectRank& each : found->ranks) {
        if (each.first) return id;
      }
    }
  }
  if (there) return *there;
  return last;
}

int run(const Words& words, Options options) {
  options.dump = words.dump;
  options.output_file = words.output;
  options.wide = words.wide;
  const Result<Format> format = text_format(words.format);
  if (!format) return report_failure(format.status());
  options.format = *format;
  auto predicate = parse_predicate(words.when);
  if (!predicate) return report_failure(predicate.status());
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;
  const auto tensor = find_tensor(words, options, *session, *predicate);
  if (!tensor) return report_failure(tensor.status());

  PropagationOptions asked;
  static_cast<FollowOptions&>(asked) = follow_options(options);
  asked.predicate = std::move(*predicate);
  asked.up = words.up;
  Result<Propagation> result = Status(Code::kInternal, "");
  {
    Progress progress(options, "looking at");
    asked.progress = progress.callback();
    result = propagation(*session, *tensor, asked);
  }
  if (!result) return report_failure(result.status());
  std::string text;
  if (words.format == "svg" || words.format == "dot") {
    CheckOptions check_options;
    check_options.steps = IntSet::of(tensor->step);
    check_options.ranks = IntSet::of(tensor->rank);
    check_options.semantics = options.semantics;
    check_options.mem_limit_bytes = options.mem_limit_mb << 20;
    check_options.threads = options.threads;
    const auto watchpoints = watchpoints_from(options);
    if (!watchpoints) return report_failure(watchpoints.status());
    const auto hits = check(*session, *watchpoints, check_options);
    if (!hits) return report_failure(hits.status());
    const PictureGraph picture = propagation_picture(*session, *result, &*hits, words.format == "svg" ? 120 : SIZE_MAX);
    if (words.format == "dot") {
      text = graph_dot(picture);
    } else {
      auto svg = graph_svg_file(picture);
      if (!svg) return report_failure(svg.status());
      text = std::move(*svg);
    }
  } else {
    text = propagation_report(*session, *result, style_for(options));
  }
  if (const Status written = write_result(options, text); !written.ok()) return report_failure(written);
  if (result->interrupted) return kExitInterrupted;
  return result->holds ? kExitFindings : kExitClean;
}

}  // namespace

Action declare_propagation(CLI::App& app) {
  auto words = std::make_shared<Words>();
  app.add_option("DUMP", words->dump, "dump directory")->required();
  app.add_option("TENSOR", words->tensor, "NODE, NODE:1, NODE:input:0; NODE may be the end of the name")->required();
  app.add_option("--when", words->when, "what counts as bad: 'nan or inf', nan, inf, or a condition")
      ->capture_default_str()
      ->type_name("COND");
  app.add_flag("--up", words->up, "where it came from, instead of where it went");
  app.add_option("--graph", words->graph, "graph id where several have the node")->type_name("N")->check(CLI::NonNegativeNumber);
  app.add_option("--execution", words->execution, "which run within the step (loop bodies)")->type_name("N");
  app.add_flag("--wide", words->wide, "full names");
  app.add_option("--format", words->format, "table, json, jsonl, markdown, dot or svg")->capture_default_str()->type_name("FORMAT");
  app.add_option("-o,--output", words->output, "write there instead of standard output")->type_name("FILE");
  return [words](const Options& options) { return run(*words, options); };
}

}  // namespace msdbg::app
