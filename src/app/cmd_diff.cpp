// msdbg diff: where two runs diverge.
#include <fmt/format.h>

#include <filesystem>

#include "app/follow_command.h"
#include "msdbg/answers.h"
#include "app/live.h"
#include "msdbg/file.h"

namespace msdbg::app {
namespace {

struct DiffWords {
  std::string b, subject, map;
  std::string steps_a, steps_b, ranks_a, ranks_b;
  std::optional<int> graph_a, graph_b;
  std::optional<double> rtol, atol;
  bool loss = false;
  std::string pattern, column;
};

Status read_set(const std::string& text, const char* option, IntSet common, IntSet* into) {
  *into = common;
  if (text.empty()) return Status();
  auto parsed = IntSet::parse(text);
  if (!parsed) return Status(Code::kInvalidArgument, fmt::format("{} {}", option, parsed.status().message()));
  *into = *parsed;
  return Status();
}

Status read_options(const DiffWords& words, const Options& common, DiffOptions* options) {
  for (const auto& [text, name, given, into] : {std::tuple(&words.steps_a, "--steps-a", &common.steps, &options->steps_a),
                                                std::tuple(&words.steps_b, "--steps-b", &common.steps, &options->steps_b),
                                                std::tuple(&words.ranks_a, "--ranks-a", &common.ranks, &options->ranks_a),
                                                std::tuple(&words.ranks_b, "--ranks-b", &common.ranks, &options->ranks_b)}) {
    if (const Status status = read_set(*text, name, *given, into); !status.ok()) return status;
  }
  options->graph_a = words.graph_a;
  options->graph_b = words.graph_b;
  options->rtol = words.rtol;
  options->atol = words.atol;
  options->threads = common.threads;
  for (const auto& [value, name] : {std::pair(words.rtol, "--rtol"), std::pair(words.atol, "--atol")}) {
    if (value && !(*value >= 0)) return Status(Code::kInvalidArgument, fmt::format("{} {}: 0 or more is expected", name, *value));
  }
  if (!words.subject.empty()) {
    auto selector = Selector::parse(words.subject);
    if (!selector) return selector.status();
    options->on = *selector;
  }
  if (words.map.empty()) return Status();
  const auto text = read_input(words.map);
  if (!text) return Status(text.status().code(), "--map " + text.status().message());
  auto map = parse_name_map(*text, words.map);
  if (!map) return Status(map.status().code(), "--map " + map.status().message());
  options->map = std::move(*map);
  return Status();
}

Result<Series> read_series(const std::string& path, const DiffWords& words) {
  const auto text = read_input(path);
  if (!text) return text.status();
  return parse_series(*text, path, {words.pattern, words.column});
}

// Compares two printed logs instead of two dumps.
Result<int> run_loss(const DiffWords& words, Context& context) {
  const Options& options = context.options();
  if (options.format > Format::kMarkdown)
    return Status(Code::kInvalidArgument, "diff --loss: --format table, json, jsonl, csv or markdown is expected");
  // The prompt has no A; both logs are named.
  const std::string& log_a = context.at_prompt() ? words.b : options.dump;
  const std::string& log_b = context.at_prompt() ? words.subject : words.b;
  if (log_b.empty()) return Status(Code::kInvalidArgument, "diff: --loss compares two logs: diff --loss LOG_A LOG_B");
  const auto a = read_series(log_a, words), b = read_series(log_b, words);
  if (!a) return a.status();
  if (!b) return b.status();
  const auto result = compare_series(*a, *b, words.rtol.value_or(1e-3));
  if (!result) return result.status();
  if (const Status written = context.write(series_report(*a, *b, *result, context.style())); !written.ok()) return written;
  if (result->verdict != SeriesVerdict::kClose) return kExitFindings;
  return options.strict && !(result->only_a.empty() && result->only_b.empty()) ? kExitIncomplete : kExitClean;
}

// The command that compares such files; "" for what may be a dump.
std::string other_command(const std::string& path_a, const DiffWords& words) {
  const bool a = is_checkpoint(path_a), b = !words.b.empty() && is_checkpoint(words.b);
  if (a && (b || words.b.empty())) return fmt::format("{} is a checkpoint: msdbg ckpt diff A B compares two", path_a);
  if (a || b)
    return fmt::format("{} is a checkpoint: msdbg ckpt match DUMP FILE says which step of a dump it belongs to", a ? path_a : words.b);
  for (const std::string& path : {path_a, words.b}) {
    std::error_code ignored;
    if (!path.empty() && std::filesystem::is_regular_file(path, ignored) && !live_factories().is_recording(path)) {
      return fmt::format("{} is a file, no dump directory; the losses that two trainings printed: msdbg diff --loss LOG_A LOG_B", path);
    }
  }
  return "";
}

Result<int> run_diff(const DiffWords& words, Context& context) {
  if (words.loss) return run_loss(words, context);
  const Options& common = context.options();
  if (!words.pattern.empty() || !words.column.empty()) {
    return Status(Code::kInvalidArgument, "diff: --pattern and --column read logs; they belong to --loss LOG_A LOG_B");
  }
  if (const std::string hint = other_command(common.dump, words); !hint.empty()) return Status(Code::kInvalidArgument, "diff: " + hint);
  DiffOptions options;
  if (const Status status = read_options(words, common, &options); !status.ok()) return status;
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& a = **opened;
  std::unique_ptr<Session> other;
  // A dump written twice compares it with itself. Without B, another part of A is compared.
  if (!words.b.empty()) {
    auto reference = open_other(context, words.b);
    if (!reference) {
      // The user meant two parts of one dump, and a selector.
      const bool parts = words.graph_a || words.graph_b || !(words.steps_a + words.steps_b + words.ranks_a + words.ranks_b).empty();
      std::error_code ignored;
      const Status& why = reference.status();
      if (!parts || std::filesystem::exists(words.b, ignored)) return why;
      const std::string& dump = a.info().source;
      return Status(why.code(), fmt::format("{}; a selector comes after both dumps: {} {} {}", why.message(),
                                            context.typed("diff"), dump, words.b));
    }
    other = std::move(*reference);
  }
  Session& b = other ? *other : a;
  Result<DiffResult> result = Status(Code::kInternal, "");
  {
    Progress progress(common, "comparing");
    options.progress = progress.callback();
    result = diff_sessions(a, b, options);
  }
  if (!result) return result.status();
  if (context.at_prompt()) {
    AnswerRows list{"tensors"};
    for (const size_t i : diff_rows(*result, context.style())) list.rows.push_back(diff_entry_answer(a, b, result->tensors[i]));
    context.list_rows(list);
  }
  if (const Status written = context.write(diff_report(a, b, *result, context.style())); !written.ok()) return written;
  if (result->interrupted) return kExitInterrupted;
  if (!result->is_equal()) return kExitFindings;
  if (result->equal + result->close == 0) return kExitInput;  // nothing compared does not mean equal
  return common.strict && !result->is_complete() ? kExitIncomplete : kExitClean;
}

Action declare_diff(const Declaration& to) {
  auto words = std::make_shared<DiffWords>();
  CLI::App& app = to.app;
  to.options.opens_all_ranks = true;
  app.add_option("B", words->b, "the dump it is compared with, the reference; left out: another part of the same dump");
  add_selector(app, &words->subject, "SELECTOR", "which nodes; default: all");
  app.add_flag("--wide", to.options.wide, "everything that differs, under full names");
  app.add_flag("--strict", to.options.strict, "status 4 if nothing differs, but something was not compared");
  app.add_option("--steps-a", words->steps_a, "steps of A; paired in order with those of B")->type_name("SET");
  app.add_option("--steps-b", words->steps_b, "steps of B")->type_name("SET");
  app.add_option("--ranks-a", words->ranks_a, "ranks of A; paired in order with those of B")->type_name("SET");
  app.add_option("--ranks-b", words->ranks_b, "ranks of B")->type_name("SET");
  app.add_option("--graph-a", words->graph_a, "graph of A by number")->type_name("N");
  app.add_option("--graph-b", words->graph_b, "graph of B by number")->type_name("N");
  app.add_option("--rtol", words->rtol, "|a - b| <= atol + rtol * |b|, instead of what rounding explains")->type_name("X");
  app.add_option("--atol", words->atol, "the same; one of the two alone makes the other 0")->type_name("X");
  app.add_option("--map", words->map, "lines NAME_A = NAME_B for nodes whose names differ")->type_name("FILE");
  app.add_flag("--loss", words->loss, "A and B are logs of two trainings (or csv): their losses are compared, --rtol is 0.001");
  app.add_option("--pattern", words->pattern, "--loss: regular expression with the value, or step and value, as groups")
      ->type_name("REGEX");
  app.add_option("--column", words->column, "--loss: which column of csv")->type_name("NAME");
  return [words](Context& context) { return run_diff(*words, context); };
}

}  // namespace

CommandEntry diff_command() {
  return {.name = "diff",
          .group = kFollowGroup,
          .summary = "where two runs diverge, and which node is to blame",
          .examples = {{"dumps/reference"},
                       {"dumps/reference @gradient --steps 0:2 --rtol 1e-3"},
                       {"--steps-a 0 --steps-b 1", "two steps of one dump"}},
          .declare = declare_diff,
          .first_help = "dump directory A; with --loss a log",
          .steps = StepsWord::kAll,
          .formats = "table, json, jsonl, csv, markdown, junit or sarif",
          .last_format = Format::kSarif,
          .selectors = true,
          .complete = "file"};
}

}  // namespace msdbg::app
