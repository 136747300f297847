// The files that turn a check into a gate, for the commands with --baseline and --suppress.
#pragma once

#include <optional>
#include <vector>

#include "app/options.h"
#include "msdbg/gate.h"

namespace msdbg::app {

struct GateFiles {
  std::optional<Baseline> baseline;
  std::optional<std::vector<Suppression>> suppressions;

  bool any() const { return baseline || suppressions; }
  const Baseline* baseline_or_null() const { return baseline ? &*baseline : nullptr; }
  const std::vector<Suppression>* suppressions_or_null() const { return suppressions ? &*suppressions : nullptr; }
};
/// Reads --baseline and --suppress. Call it before the dump is read: a typo in a file should not cost an hour.
/// Error: kNotFound, kIoError or kCorrupt with the option and the file.
Result<GateFiles> read_gate_files(const Options& options);

/// Logs warnings: suppressions that matched nothing, rules that broke, steps that do not exist.
void print_gate_gaps(const Options& options, const CheckResult& result, const Gate& gate);

}  // namespace msdbg::app
