// msdbg propagation: how a bad tensor spread in its step, or where it came from.
#include <fmt/format.h>

#include <algorithm>

#include "app/follow_command.h"
#include "app/rules.h"
#include "msdbg/html_report.h"

namespace msdbg::app {
namespace {

struct PropagationWords {
  std::string tensor, when = "nan or inf";
  uint32_t execution = 0;
  bool up = false;
};

constexpr std::string_view kFormats = "table, json, jsonl, markdown, dot or svg";

/// One for each requested rank that has the tensor.
struct Found {
  TensorId tensor;
  bool bad = false;
};

/// The first requested step in which the tensor exists and is bad; otherwise the first in which it exists.
Result<Found> find_on(int rank, const PropagationWords& words, const Options& options, Session& session, const Predicate& predicate) {
  std::optional<Found> there;
  Status last(Code::kNotFound, fmt::format("no data for step {}; have steps {}", options.steps.text(), numbers_text(session.steps())));
  for (const int64_t step : session.steps()) {
    if (!options.steps.contains(step)) continue;
    const auto id = resolve_tensor(session, words.tensor, step, rank, options.graph, words.execution);
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

Result<std::vector<Found>> find_tensors(const PropagationWords& words, const Options& options, Session& session,
                                        const Predicate& predicate) {
  std::vector<Found> all;
  const std::vector<int64_t> ranks(session.ranks().begin(), session.ranks().end());
  Status last(Code::kNotFound, fmt::format("no rank {}; have {}", options.ranks.text(), numbers_text(ranks)));
  for (const int rank : session.ranks()) {
    if (!options.ranks.contains(rank)) continue;
    auto found = find_on(rank, words, options, session, predicate);
    if (found) all.push_back(std::move(*found));
    else if (found.status().code() == Code::kInvalidArgument) return found.status();
    else last = found.status();  // another rank may hold a different part of the network
  }
  if (all.empty()) return last;
  return all;
}

/// Nothing spreads on ranks where the tensor is good.
void leave_out_good(Context& context, const PropagationWords& words, std::vector<Found>* tensors) {
  if (tensors->size() < 2 || std::ranges::all_of(*tensors, &Found::bad)) return;
  std::vector<int64_t> good;
  for (const Found& found : *tensors) {
    if (!found.bad) good.push_back(found.tensor.rank);
  }
  if (good.size() == tensors->size()) tensors->resize(1);
  else std::erase_if(*tensors, [](const Found& found) { return !found.bad; });
  context.note(fmt::format("{} is good on {} {}", printable(words.tensor), good.size() == 1 ? "rank" : "ranks", numbers_text(good)));
}

Result<std::string> picture_text(const Options& options, Session& session, const Propagation& result) {
  CheckOptions check_options = check_options_of(options);
  check_options.steps = IntSet::of(result.tensor.step);
  check_options.ranks = IntSet::of(result.tensor.rank);
  const auto hits = check(session, default_watchpoints(), check_options);
  if (!hits) return hits.status();
  const PictureGraph picture = propagation_picture(session, result, &*hits, options.picture == "svg" ? 120 : SIZE_MAX);
  if (options.picture == "dot") return graph_dot(picture);
  return graph_svg_file(picture);
}

/// JSON of several ranks is a list; other formats are concatenated.
std::string joined(const std::vector<std::string>& texts, Format format) {
  if (texts.size() == 1) return texts.front();
  std::string out;
  for (const std::string& text : texts) {
    if (format == Format::kJson) out += (out.empty() ? "[" : ",") + std::string("\n") + text.substr(0, text.find_last_not_of('\n') + 1);
    else out += (out.empty() || format == Format::kJsonl ? "" : "\n") + text;
  }
  return format == Format::kJson ? out + "\n]\n" : out;
}

/// What an answer says besides the tensor's own rank: down, the table; up, where it came from.
std::string story_of(const Session& session, const Propagation& result, const std::string& text) {
  if (!result.up) return text.substr(std::min(text.find('\n'), text.size()));
  std::string out;
  for (const PropagationNode& node : result.nodes) {
    if (node.role != PropagationRole::kOrigin) continue;
    out += fmt::format("{} {}\n", node.rank, session.graph(node.rank, node.graph)->node(node.node).name);
  }
  return out;
}

Result<int> run_propagation(const PropagationWords& words, Context& context) {
  const Options& options = context.options();
  if (options.format == Format::kCsv)
    return Status(Code::kInvalidArgument, fmt::format("--format csv is not for this command; use {}", kFormats));
  auto predicate = parse_predicate(words.when);
  if (!predicate) return predicate.status();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  auto tensors = find_tensors(words, options, session, *predicate);
  if (!tensors) return tensors.status();
  const bool draws = !options.picture.empty();
  if (options.format != Format::kJson && options.format != Format::kJsonl) leave_out_good(context, words, &*tensors);
  if (draws && tensors->size() > 1) {
    // A picture shows one rank.
    const auto bad = std::find_if(tensors->begin(), tensors->end(), [](const Found& found) { return found.bad; });
    const Found shown = bad == tensors->end() ? tensors->front() : *bad;
    context.note(fmt::format("drawn: rank {} of {}; choose with --ranks", shown.tensor.rank, tensors->size()));
    *tensors = {shown};
  }

  PropagationOptions asked;
  static_cast<FollowOptions&>(asked) = follow_options(options);
  asked.predicate = std::move(*predicate);
  asked.up = words.up;
  std::vector<std::string> texts;
  struct Same {
    std::pair<int64_t, std::string> told;  // step, story
    std::vector<int64_t> ranks;            // further ones
  };
  std::vector<Same> same;  // by text
  const bool tells_all = draws || options.format == Format::kJson || options.format == Format::kJsonl;
  bool holds = false, interrupted = false;
  for (const Found& found : *tensors) {
    Result<Propagation> result = Status(Code::kInternal, "");
    {
      Progress progress(options, "checking");
      asked.progress = progress.callback();
      result = propagation(session, found.tensor, asked);
    }
    if (!result) return result.status();
    if (draws) {
      auto text = picture_text(options, session, *result);
      if (!text) return text.status();
      texts.push_back(std::move(*text));
    } else {
      std::string text = propagation_report(session, *result, context.style());
      const std::string story = tells_all ? "" : story_of(session, *result, text);
      const auto told = story.empty() ? same.end() : std::ranges::find(same, std::pair(result->tensor.step, story), &Same::told);
      if (told == same.end()) {
        same.push_back({{result->tensor.step, story}, {}});
        texts.push_back(std::move(text));
      } else {
        told->ranks.push_back(result->tensor.rank);
      }
    }
    holds = holds || result->holds;
    interrupted = result->interrupted;
    if (interrupted) break;
  }
  for (const Same& each : same) {
    if (each.ranks.empty()) continue;
    context.note(fmt::format("{} on {} {}, too: choose with --rank", words.up ? "it came from there" : "the same",
                             each.ranks.size() == 1 ? "rank" : "ranks", numbers_text(each.ranks)));
  }
  if (const Status written = context.write(joined(texts, options.format)); !written.ok()) return written;
  if (interrupted) return kExitInterrupted;
  if (holds) return kExitFindings;
  return is_damaged(session) ? kExitInput : kExitClean;
}

Action declare_propagation(const Declaration& to) {
  auto words = std::make_shared<PropagationWords>();
  to.options.opens_all_ranks = true;  // collectives lead to the others
  CLI::App& app = to.app;
  app.add_option("TENSOR", words->tensor, "NODE, NODE:1 or NODE:input:0; NODE may be the end of the name")->required();
  app.add_option("--when", words->when, "what spreads: 'nan or inf', nan, inf, a condition or an expression")
      ->capture_default_str()
      ->type_name("COND");
  app.add_flag("--up", words->up, "where it came from, instead of where it went");
  add_graph(to);
  app.add_option("--execution", words->execution, "which run within the step (loop bodies)")->type_name("N");
  app.add_flag("--wide", to.options.wide, "full names");
  return [words](Context& context) { return run_propagation(*words, context); };
}

}  // namespace

CommandEntry propagation_command() {
  return {.name = "propagation",
          .group = kFollowGroup,
          .summary = "how a bad tensor spread, or where it came from",
          .examples = {{"Log-op0", "where it went, who absorbed it"},
                       {"fc2.weight --up --step 1", "where it came from"},
                       {"Log-op0 --format svg -o spread.svg"}},
          .declare = declare_propagation,
          .steps = StepsWord::kCurrent,
          .formats = kFormats,
          .last_format = Format::kMarkdown,
          .pictures = true,
          .complete = "tensor"};
}

}  // namespace msdbg::app
