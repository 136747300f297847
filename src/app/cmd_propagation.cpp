// msdbg propagation: how a bad tensor spread in its step, or where it came from.
#include <fmt/format.h>

#include <algorithm>

#include "app/follow_command.h"
#include "app/progress.h"
#include "app/rules.h"

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

/// Of each rank asked for that has the tensor.
struct Found {
  TensorId tensor;
  bool bad = false;
};

/// In the first step asked for where the tensor is there and bad; else in the first where it is there.
Result<Found> find_on(int rank, const Words& words, const Options& options, Session& session, const Predicate& predicate) {
  const std::optional<int> graph = words.graph < 0 ? std::nullopt : std::optional(words.graph);
  std::optional<Found> there;
  Status last(Code::kNotFound, fmt::format("no data for step {}; have steps {}", options.steps.text(), numbers_text(session.steps())));
  for (const int64_t step : session.steps()) {
    if (!options.steps.contains(step)) continue;
    const auto id = resolve_tensor(session, words.tensor, step, rank, graph, words.execution);
    if (!id) return id.status();
    const auto info = session.describe(*id);
    if (!info) {
      last = info.status();
      continue;
    }
    if (!there) there = Found{*id};
    const auto target = follow_target(session, words.tensor, IntSet::of(rank), id->graph);
    if (!target) return target.status();
    FollowOptions one = follow_options(options);
    one.steps = IntSet::of(step);
    one.ranks = IntSet::of(rank);
    const auto found = bisect(session, *target, predicate, one);
    if (found && !found->ranks.empty() && found->ranks.front().first) return Found{*id, true};
  }
  if (there) return *there;
  return last;
}

Result<std::vector<Found>> find_tensors(const Words& words, const Options& options, Session& session, const Predicate& predicate) {
  std::vector<Found> all;
  const std::vector<int64_t> ranks(session.ranks().begin(), session.ranks().end());
  Status last(Code::kNotFound, fmt::format("no rank {}; have {}", options.ranks.text(), numbers_text(ranks)));
  for (const int rank : session.ranks()) {
    if (!options.ranks.contains(rank)) continue;
    auto found = find_on(rank, words, options, session, predicate);
    if (found) all.push_back(std::move(*found));
    else if (found.status().code() == Code::kInvalidArgument) return found.status();
    else last = found.status();  // another rank may hold another part of the network
  }
  if (all.empty()) return last;
  return all;
}

Result<std::string> picture_text(const Words& words, const Options& options, Session& session, const Propagation& result) {
  Options shown = options;
  shown.steps = IntSet::of(result.tensor.step);
  shown.ranks = IntSet::of(result.tensor.rank);
  const auto watchpoints = watchpoints_from(shown);
  if (!watchpoints) return watchpoints.status();
  const auto hits = check(session, *watchpoints, check_options_of(shown));
  if (!hits) return hits.status();
  const PictureGraph picture = propagation_picture(session, result, &*hits, words.format == "svg" ? 120 : SIZE_MAX);
  if (words.format == "dot") return graph_dot(picture);
  return graph_svg_file(picture);
}

/// JSON of several ranks is a list, other formats follow one another.
std::string joined(const std::vector<std::string>& texts, Format format) {
  if (texts.size() == 1) return texts.front();
  std::string out;
  for (const std::string& text : texts) {
    if (format == Format::kJson) out += (out.empty() ? "[" : ",") + std::string("\n") + text.substr(0, text.find_last_not_of('\n') + 1);
    else out += (out.empty() || format == Format::kJsonl ? "" : "\n") + text;
  }
  return format == Format::kJson ? out + "\n]\n" : out;
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
  auto tensors = find_tensors(words, options, *session, *predicate);
  if (!tensors) return report_failure(tensors.status());
  const bool draws = words.format == "svg" || words.format == "dot";
  if (draws && tensors->size() > 1) {
    // One picture shows one rank.
    const auto bad = std::find_if(tensors->begin(), tensors->end(), [](const Found& found) { return found.bad; });
    const Found shown = bad == tensors->end() ? tensors->front() : *bad;
    note(options, fmt::format("drawn: rank {} of {}; choose with --ranks", shown.tensor.rank, tensors->size()));
    *tensors = {shown};
  }

  PropagationOptions asked;
  static_cast<FollowOptions&>(asked) = follow_options(options);
  asked.predicate = std::move(*predicate);
  asked.up = words.up;
  std::vector<std::string> texts;
  bool holds = false, interrupted = false;
  for (const Found& found : *tensors) {
    Result<Propagation> result = Status(Code::kInternal, "");
    {
      Progress progress(options, "checking");
      asked.progress = progress.callback();
      result = propagation(*session, found.tensor, asked);
    }
    if (!result) return report_failure(result.status());
    if (draws) {
      auto text = picture_text(words, options, *session, *result);
      if (!text) return report_failure(text.status());
      texts.push_back(std::move(*text));
    } else {
      texts.push_back(propagation_report(*session, *result, style_for(options)));
    }
    holds = holds || result->holds;
    interrupted = result->interrupted;
    if (interrupted) break;
  }
  if (const Status written = write_result(options, joined(texts, options.format)); !written.ok()) return report_failure(written);
  if (interrupted) return kExitInterrupted;
  if (holds) return kExitFindings;
  return is_damaged(*session) ? kExitInput : kExitClean;
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
  app.add_option("--graph", words->graph, "graph id where several have the node")->type_name("N")->check(CLI::Range(0, 1000000000));
  app.add_option("--execution", words->execution, "which run within the step (loop bodies)")->type_name("N");
  app.add_flag("--wide", words->wide, "full names");
  app.add_option("--format", words->format, "table, json, jsonl, markdown, dot or svg")->capture_default_str()->type_name("FORMAT");
  app.add_option("-o,--output", words->output, "write there instead of standard output")->type_name("FILE");
  return [words](const Options& options) { return run(*words, options); };
}

}  // namespace msdbg::app
