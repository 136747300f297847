// A check whose result is written by the tests of formats.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "msdbg/check.h"
#include "msdbg/report.h"

namespace msdbg {

/// Runs each condition on every node, in one thread; adds the rules to `style`.
inline CheckResult check_everything(Session& session, std::initializer_list<const char*> conditions, ReportStyle* style) {
  std::vector<Watchpoint> watches;
  for (const char* text : conditions) {
    Watchpoint w;
    w.id = static_cast<int>(watches.size()) + 1;
    w.on = Selector::parse("@all").value();
    w.condition = parse_condition(text).value();
    w.rule = w.condition->spec->id;
    w.severity = w.condition->spec->severity;
    style->rules_run.push_back(w.rule);
    watches.push_back(std::move(w));
  }
  CheckOptions options;
  options.threads = 1;
  return check(session, watches, options).value();
}

}  // namespace msdbg
