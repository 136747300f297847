// msdbg layers: one line for each trained parameter.
#include <fmt/format.h>

#include "app/follow_command.h"
#include "msdbg/layers_report.h"

namespace msdbg::app {
namespace {

struct LayersWords {
  std::string selector;
  bool by_layer = false, ascii = false;
};

Result<int> run_layers(const LayersWords& words, Context& context) {
  const Options& options = context.options();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  LayersOptions asked;
  static_cast<FollowOptions&>(asked) = follow_options(options);
  asked.by_layer = words.by_layer;
  if (!words.selector.empty()) {
    const auto on = Selector::parse(words.selector);
    if (!on) return on.status();
    asked.on = on->in(session.graphs());
  }
  Result<LayersResult> result = Status(Code::kInternal, "");
  {
    Progress progress(options, "reading");
    asked.progress = progress.callback();
    result = layers(session, asked);
  }
  if (!result) return result.status();
  const bool ascii = words.ascii || (options.output_file.empty() && plain_terminal());
  if (const Status written = context.write(layers_report(session, *result, context.style(), ascii)); !written.ok()) return written;
  if (result->interrupted) return kExitInterrupted;
  return session.info().kind == SessionKind::kCheckpoint && is_damaged(session) ? kExitInput : kExitClean;
}

Action declare_layers(const Declaration& to) {
  auto words = std::make_shared<LayersWords>();
  add_selector(to.app, &words->selector, "SEL", "only these parameters");
  to.app.add_flag("--by-layer", words->by_layer, "one line for encoder.layers.3, not for each of its parameters");
  to.app.add_flag("--ascii", words->ascii, "sparklines of plain characters");
  to.app.add_flag("--wide", to.options.wide, "all columns, full paths");
  return [words](Context& context) { return run_layers(*words, context); };
}

}  // namespace

CommandEntry layers_command() {
  return {.name = "layers",
          .group = kLookGroup,
          .summary = "each trained parameter: size, gradient, update, NaN",
          .examples = {{""}, {"--by-layer"}, {"fc1 --steps 0:50"}, {"--format csv -o layers.csv"}},
          .declare = declare_layers,
          .steps = StepsWord::kAll,
          .formats = "table, json, jsonl, csv or markdown",
          .last_format = Format::kMarkdown,
          .selectors = true,
          .complete = "selector"};
}

}  // namespace msdbg::app
