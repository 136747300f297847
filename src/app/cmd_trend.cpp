// msdbg trend: a statistic over the steps.
#include <unistd.h>

#include <cstdlib>

#include "app/follow_command.h"
#include "app/progress.h"

namespace msdbg::app {
namespace {

struct Words {
  std::string dump, statistic, target = "@all";
  int graph = -1;
  bool ascii = false, wide = false;
};

/// The terminal's own word about its characters; files and pipes get Unicode.
bool plain_terminal() {
  if (::isatty(STDOUT_FILENO) == 0) return false;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = to_lower(value);
    return locale.find("utf-8") == std::string::npos && locale.find("utf8") == std::string::npos;
  }
  return false;
}

int run(const Words& words, Options options) {
  options.dump = words.dump;
  options.wide = words.wide;
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;
  const auto target = follow_target(*session, words.target, options.ranks, words.graph < 0 ? std::nullopt : std::optional(words.graph));
  if (!target) return report_failure(target.status());
  Result<TrendResult> result = Status(Code::kInternal, "");
  {
    FollowOptions follow = follow_options(options);
    Progress progress(options, "reading");
    follow.progress = progress.callback();
    result = trend(*session, *target, words.statistic, follow);
  }
  if (!result) return report_failure(result.status());
  const bool ascii = words.ascii || (options.output_file.empty() && plain_terminal());
  if (const Status written = write_result(options, trend_report(*session, *result, style_for(options), ascii)); !written.ok())
    return report_failure(written);
  if (result->interrupted) return kExitInterrupted;
  return session->info().kind == SessionKind::kCheckpoint && is_damaged(*session) ? kExitInput : kExitClean;
}

}  // namespace

Action declare_trend(CLI::App& app) {
  auto words = std::make_shared<Words>();
  std::string names;
  for (const std::string& name : statistic_names()) names += (names.empty() ? "" : ", ") + name;
  app.add_option("DUMP", words->dump, "dump directory")->required();
  app.add_option("STATISTIC", words->statistic, names)->required();
  app.add_option("SEL", words->target, "selector, or one tensor; default: every node");
  app.add_option("--graph", words->graph, "graph id where several have the node")->type_name("N")->check(CLI::Range(0, 1000000000));
  app.add_flag("--ascii", words->ascii, "sparklines of plain characters");
  app.add_flag("--wide", words->wide, "full names");
  return [words](const Options& options) { return run(*words, options); };
}

}  // namespace msdbg::app
