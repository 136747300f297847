#include "app/gate_files.h"

#include <fmt/format.h>

#include "app/output.h"
#include "msdbg/file.h"

namespace msdbg::app {

Result<GateFiles> read_gate_files(const Options& options) {
  GateFiles files;
  if (!options.baseline.empty()) {
    const auto text = read_input(options.baseline);
    if (!text) {
      const bool absent = text.status().code() == Code::kNotFound;
      return Status(text.status().code(),
                    fmt::format("--baseline {}{}", text.status().message(), absent ? "; --bless FILE writes one" : ""));
    }
    auto parsed = Baseline::parse(*text, options.baseline);
    if (!parsed) return Status(parsed.status().code(), "--baseline " + parsed.status().message());
    files.baseline = std::move(*parsed);
  }
  if (!options.suppress.empty()) {
    const auto text = read_input(options.suppress);
    if (!text) return Status(text.status().code(), "--suppress " + text.status().message());
    auto parsed = parse_suppressions(*text, options.suppress);
    if (!parsed) return Status(parsed.status().code(), "--suppress " + parsed.status().message());
    files.suppressions = std::move(*parsed);
  }
  return files;
}

void print_gate_gaps(const Options& options, const CheckResult& result, const Gate& gate) {
  for (const RuleProblem& problem : result.rule_problems) {
    const RuleProblemKind kind = problem.kind;
    if (kind == RuleProblemKind::kIdle || kind == RuleProblemKind::kUnset) continue;
    const std::string rule = problem.rule == "*" ? "" : "rule " + problem.rule + ": ";
    log(LogLevel::kWarning, fmt::format("not checked: {}{}", rule, problem.reason.substr(0, problem.reason.find('\n'))));
  }
  for (const Suppression& unused : gate.unused) {
    log(LogLevel::kWarning, fmt::format("{}:{}: matched nothing: {}", options.suppress, unused.line, unused.text));
  }
}

}  // namespace msdbg::app
