// msdbg hist: how the elements of tensors are distributed, in common bins over the steps.
#include <algorithm>

#include "app/follow_command.h"
#include "app/live.h"
#include "app/tensor_word.h"
#include "msdbg/histogram_report.h"

namespace msdbg::app {
namespace {

struct HistWords {
  std::string tensor, slice;
  size_t bins = 20;
  std::optional<double> min, max;
  bool log = false, exponents = false, log_counts = false, ascii = false;
};

Result<int> run_hist(const HistWords& words, Context& context) {
  const Options& options = context.options();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  const auto target = follow_target(session, words.tensor, options.ranks, options.graph);
  if (!target) return target.status();
  const BinOptions bins{words.bins,
                        words.exponents ? BinScale::kExponent
                        : words.log     ? BinScale::kLog
                                        : BinScale::kLinear,
                        words.min, words.max};
  Result<HistogramResult> result = Status(Code::kInternal, "");
  {
    FollowOptions follow = follow_options(options);
    Progress progress(options, "reading");
    follow.progress = progress.callback();
    result = histograms(session, *target, bins, words.slice, follow);
  }
  const bool none = !result || std::none_of(result->lines.begin(), result->lines.end(),
                                            [](const HistogramLine& line) { return line.histogram.has_value(); });
  if (none && (!result || !result->interrupted)) {
    if (const Status why = keep_for_next_step(session, target->nodes); !why.ok()) return why;
  }
  if (!result) return result.status();
  const bool ascii = words.ascii || (options.output_file.empty() && plain_terminal());
  const std::string text = histogram_report(session, *result, context.style(), words.log_counts, ascii);
  if (const Status written = context.write(text); !written.ok()) return written;
  if (result->interrupted) return kExitInterrupted;
  return none ? kExitInput : kExitClean;
}

Action declare_hist(const Declaration& to) {
  auto words = std::make_shared<HistWords>();
  CLI::App& app = to.app;
  add_selector(app, &words->tensor, "TENSOR", "NODE, NODE:0, NODE:input:1 with a slice such as [0:2,:], or a selector");
  app.get_option("TENSOR")->required();
  add_graph(to);
  app.add_option("--slice", words->slice, "part of each, e.g. 0:2,:,3")->type_name("SLICE");
  app.add_option("--bins", words->bins, "number of bins")->capture_default_str()->type_name("N");
  app.add_option("--min", words->min, "first edge; default: the smallest element of all steps")->type_name("X");
  app.add_option("--max", words->max, "last edge; default: the largest element of all steps")->type_name("X");
  CLI::Option* log = app.add_flag("--log-bins", words->log, "magnitudes, in bins of equal ratio");
  app.add_flag("--exponents", words->exponents, "magnitudes by powers of two, and the loss scale that float16 needs")->excludes(log);
  app.add_flag("--log-counts", words->log_counts, "draw logarithms of the counts, which makes rare values visible");
  app.add_flag("--ascii", words->ascii, "plain characters");
  app.add_flag("--wide", to.options.wide, "full names");
  return [words](Context& context) -> Result<int> {
    if (const Status sliced = take_slice("hist", &words->tensor, &words->slice); !sliced.ok()) return sliced;
    return run_hist(*words, context);
  };
}

}  // namespace

CommandEntry hist_command() {
  return {
      .name = "hist",
      .group = kTensorGroup,
      .summary = "how the elements are distributed, over the steps",
      .examples = {{"fc1.weight"}, {"fc1.weight --steps all --bins 40"}, {"@gradient --exponents"}, {"fc1.weight[0,:] --min -1 --max 1"}},
      .declare = declare_hist,
      .steps = StepsWord::kCurrent,
      .formats = "table, json, jsonl, csv or markdown",
      .last_format = Format::kMarkdown,
      .selectors = true,
      .complete = "tensor"};
}

}  // namespace msdbg::app
