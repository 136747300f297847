// msdbg convert: tensors in containers of the Ascend runtime become .npy files.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "app/follow_command.h"
#include "msdbg/answers.h"
#include "msdbg/dump.h"

namespace msdbg::app {
namespace {

/// More are counted.
constexpr size_t kMostLeft = 20;

struct ConvertWords {
  std::string selector, directory;
};

std::string count_text(uint64_t count, std::string_view unit) { return fmt::format("{} {}{}", count, unit, count == 1 ? "" : "s"); }

std::string convert_text(const ConvertResult& result, const std::string& directory) {
  std::string text = fmt::format("{} converted, {} copied", count_text(result.converted, "tensor"), count_text(result.copied, "file"));
  if (result.present > 0) text += fmt::format(", {} there already", result.present);
  text += fmt::format(": {} written to {}\n", format_bytes(result.bytes), printable(directory));
  if (result.left.empty()) return text;
  text += fmt::format("{} not converted; {} copied with {}:\n", count_text(result.left.size(), "tensor"),
                      result.left.size() == 1 ? "it was" : "they were", result.left.size() == 1 ? "its container" : "their containers");
  for (const ConvertResult::Left& left : std::span(result.left).first(std::min(kMostLeft, result.left.size()))) {
    text += fmt::format("  {}: {}\n", printable(left.tensor), printable(left.reason));
  }
  if (result.left.size() > kMostLeft) text += fmt::format("  ... {} more\n", result.left.size() - kMostLeft);
  return text;
}

std::string_view done_word(ConvertResult::Done done) {
  return done == ConvertResult::Done::kConverted ? "converted" : done == ConvertResult::Done::kCopied ? "copied" : "present";
}

Answer convert_answer(const ConvertResult& result, const std::string& dump, const std::string& directory) {
  Answer files = Answer::array(), left = Answer::array();
  for (const ConvertResult::File& file : result.files) {
    files.push_back({{"file", file.path},
                     {"done", done_word(file.done)},
                     {"from", file.from},
                     {"slot", file.slot ? Answer(slot_name(*file.slot)) : Answer()}});
  }
  for (const ConvertResult::Left& tensor : result.left) {
    left.push_back({{"tensor", tensor.tensor}, {"reason", tensor.reason}, {"damaged", tensor.damaged}});
  }
  return {{"dump", dump},
          {"output", directory},
          {"converted", result.converted},
          {"copied", result.copied},
          {"present", result.present},
          {"bytes", result.bytes},
          {"not_converted", std::move(left)},
          {"files", std::move(files)}};
}

std::string convert_report(const ConvertResult& result, const std::string& dump, const std::string& directory, Format format) {
  if (format == Format::kJson) return json_text(convert_answer(result, dump, directory));
  if (format == Format::kJsonl) return json_lines(convert_answer(result, dump, directory), "files");
  return convert_text(result, directory);
}

Result<int> run_convert(const ConvertWords& words, Context& context) {
  const Options& options = context.options();
  const auto opened = context.session();
  if (!opened) return opened.status();
  Session& session = **opened;
  TensorQuery query;
  query.inputs = query.outputs = true;
  query.steps = options.steps;
  query.ranks = options.ranks;
  std::vector<NodeRef> nodes;
  if (!words.selector.empty()) {
    const auto selector = Selector::parse(words.selector);
    if (!selector) return selector.status();
    auto found = resolve_or_explain(*selector, session.graphs());
    if (!found) return found.status();
    nodes = std::move(*found);
    query.nodes = &nodes;
  }
  ConvertOptions convert;
  convert.output = words.directory;
  convert.threads = options.threads;
  convert.list = options.format != Format::kTable;
  Result<ConvertResult> result = [&] {
    Progress progress(options, "converting", "file");
    convert.progress = progress.callback();
    return convert_dump(session, query, convert);
  }();
  if (!result) {
    if (result.status().code() != Code::kInterrupted) return result.status();
    return Status(Code::kInterrupted,
                  fmt::format("interrupted: the same command goes on where it stopped in {}", printable(words.directory)));
  }
  const std::string text = convert_report(*result, session.info().source, words.directory, options.format);
  if (const Status written = context.write(text); !written.ok()) return written;
  if (std::ranges::any_of(result->left, &ConvertResult::Left::damaged)) return kExitInput;
  return !result->left.empty() && options.strict ? kExitIncomplete : kExitClean;
}

Action declare_convert(const Declaration& to) {
  auto words = std::make_shared<ConvertWords>();
  add_selector(to.app, &words->selector, "SEL", "selector; default: everything");
  to.app.add_option("-o,--output", words->directory, "directory to write to")->type_name("DIR")->required();
  return [words](Context& context) { return run_convert(*words, context); };
}

}  // namespace

CommandEntry convert_command() {
  return {.name = "convert",
          .group = kResultGroup,
          .summary = "the containers of an Ascend dump as .npy files",
          .details = "Writes a dump with the same tensors in their own order, under MindSpore's file names; graphs,\n"
                     "metadata and all other files are copied. Run it again after an interruption: files that are\n"
                     "complete stay. bfloat16 becomes float32, 4-bit integers become int8.",
          .examples = {{"-o converted"}, {"@gradient --steps 0:3 -o gradients"}, {"-o converted --format json"}},
          .declare = declare_convert,
          .steps = StepsWord::kAll,
          .formats = "table, json or jsonl",
          .own_output = true,
          .selectors = true};
}

}  // namespace msdbg::app
