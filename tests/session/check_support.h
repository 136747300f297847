// Shorthand for the tests of check(): watchpoints from text, and results in a readable form.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "msdbg/check.h"
#include "support/fake_session.h"

namespace msdbg::testing {

/// Watchpoint `id` with a selector and a condition as text.
inline Watchpoint watch(int id, std::string_view on, std::string_view condition) {
  Watchpoint made;
  made.id = id;
  made.on = Selector::parse(on).value();
  made.condition = parse_condition(condition).value();
  made.rule = made.condition->spec->id;
  made.severity = made.condition->spec->severity;
  return made;
}

inline Watchpoint watch(int id, std::string_view on, ScriptCheck script) {
  Watchpoint made;
  made.id = id;
  made.on = Selector::parse(on).value();
  made.script = std::move(script);
  made.rule = "script";
  return made;
}

inline CheckResult checked(Session& session, const std::vector<Watchpoint>& watches, const CheckOptions& options = {}) {
  Result<CheckResult> result = check(session, watches, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result ? std::move(*result) : CheckResult{};
}

/// "step 1 relu:output:0 tensor_overflow".
inline std::vector<std::string> hits(const Session& session, const CheckResult& result) {
  std::vector<std::string> lines;
  for (const Hit& hit : result.hits) {
    lines.push_back("step " + std::to_string(hit.tensor.step) + " " + session.tensor_name(hit.tensor) + " " + hit.rule);
  }
  return lines;
}

/// "step 1 relu:output:0 tensor_too_large: NaN in the tensor (semantics compat) [1]".
inline std::vector<std::string> open_questions(const Session& session, const CheckResult& result) {
  std::vector<std::string> lines;
  for (const NotChecked& entry : result.not_checked) {
    lines.push_back("step " + std::to_string(entry.tensor.step) + " " + session.tensor_name(entry.tensor) + " " +
                    entry.rule + ": " + entry.reason + " [" + std::to_string(entry.error_code) + "]");
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace msdbg::testing
