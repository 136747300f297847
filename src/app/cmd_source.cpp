// msdbg source: the user's program with findings and statistics beside its lines.
#include "app/follow_command.h"

namespace msdbg::app {
namespace {

struct Words {
  std::string dump, rules = "default";
  SourceOptions source;
  size_t context = 2;
  bool all = false, wide = false;
};

int run(const Words& words, Options options) {
  options.dump = words.dump;
  options.rules = words.rules;
  options.wide = words.wide;
  const auto watchpoints = watchpoints_from(options);
  if (!watchpoints) return report_failure(watchpoints.status());
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;
  CheckOptions check_options;
  check_options.steps = options.steps;
  check_options.ranks = options.ranks;
  check_options.semantics = options.semantics;
  check_options.mem_limit_bytes = options.mem_limit_mb << 20;
  check_options.threads = options.threads;
  Result<CheckResult> result = Status(Code::kInternal, "");
  {
    Progress progress(options, "looking at");
    check_options.progress = progress.callback();
    result = check(*session, *watchpoints, check_options);
  }
  if (!result) return report_failure(result.status());
  const auto files = annotate_source(*session, *result, words.source);
  if (!files) return report_failure(files.status());
  const std::string text = source_report(*session, *files, *result, style_for(options), words.all ? SIZE_MAX : words.context);
  if (const Status written = write_result(options, text); !written.ok()) return report_failure(written);
  if (result->interrupted) return kExitInterrupted;
  for (const SourceFile& file : *files) {
    if (file.findings > 0) return kExitFindings;
  }
  return kExitClean;
}

}  // namespace

Action declare_source(CLI::App& app) {
  auto words = std::make_shared<Words>();
  app.add_option("DUMP", words->dump, "dump directory")->required();
  app.add_option("FILE", words->source.file, "end of the path of a file, e.g. train.py; default: every file of the program");
  app.add_option("--root", words->source.root, "directory that holds the files now")->type_name("DIR");
  app.add_option("--rules", words->rules, "which rules, as check takes them")->capture_default_str()->type_name("RULES");
  app.add_option("--context", words->context, "lines around those with operators")->capture_default_str()->type_name("N");
  app.add_flag("--all", words->all, "every line of the file");
  app.add_flag("--framework", words->source.framework, "files inside the framework, too");
  app.add_flag("--wide", words->wide, "long lines in full");
  return [words](const Options& options) { return run(*words, options); };
}

}  // namespace msdbg::app
