// msdbg origin: the first tensor that broke.
#include "app/output.h"
#include "app/progress.h"
#include "app/run.h"

namespace msdbg::app {

int run_origin(const Options& options) {
  auto predicate = parse_predicate(options.when);
  if (!predicate) return report_failure(predicate.status());
  int status = kExitClean;
  const auto session = open_session(options, &status);
  if (session == nullptr) return status;

  OriginOptions origin_options;
  origin_options.predicate = std::move(*predicate);
  origin_options.steps = options.steps;
  origin_options.ranks = options.ranks;
  origin_options.semantics = options.semantics;
  origin_options.mem_limit_bytes = options.mem_limit_mb << 20;
  origin_options.threads = options.threads;
  Result<OriginResult> result = Status(Code::kInternal, "");
  {
    Progress progress(options, "checking");
    origin_options.progress = progress.callback();
    result = find_origins(*session, origin_options);
  }
  if (!result) return report_failure(result.status());
  if (const Status written = write_result(options, origin_report(*session, *result, style_for(options))); !written.ok())
    return report_failure(written);
  if (result->interrupted) return kExitInterrupted;
  if (!result->steps.empty()) return kExitFindings;
  if (is_damaged(*session)) return kExitInput;
  return options.strict && !result->not_checked.empty() ? kExitIncomplete : kExitClean;
}

}  // namespace msdbg::app
