// The commands that live in files of their own. One line each.
#include "app/command.h"

namespace msdbg::app {

Action declare_bisect(CLI::App& app);
Action declare_ckpt(CLI::App& app);
Action declare_diff(CLI::App& app);
Action declare_guide(CLI::App& app);
Action declare_plan(CLI::App& app);
Action declare_propagation(CLI::App& app);
Action declare_report(CLI::App& app);
Action declare_rules(CLI::App& app);
Action declare_source(CLI::App& app);
Action declare_trend(CLI::App& app);
Action declare_why(CLI::App& app);

std::span<const CommandEntry> command_table() {
  static const std::vector<CommandEntry> kTable = {
      {"diff", "where two runs diverge, and which node is to blame", declare_diff, true, true, Format::kSarif,
       "table, json, jsonl, csv, markdown, junit or sarif"},
      {"ckpt", "checkpoints: what is in one, what changed, which step it belongs to", declare_ckpt, true, true, Format::kMarkdown,
       "table, json, jsonl, csv or markdown"},
      {"guide", "a guided checklist of the usual causes, answered from the dump where possible", declare_guide, false, false},
      {"bisect", "the first step in which something holds", declare_bisect, true},
      {"plan", "MindSpore's dump configuration for chosen nodes and steps, with its cost", declare_plan, true, false},
      {"propagation", "how a bad tensor spread, or where it came from; table, dot, SVG", declare_propagation, true, false},
      {"report", "a report to share: what broke, where, with pictures; HTML or Markdown", declare_report, true, false},
      {"rules", "rule libraries: list, info, test, new", declare_rules},
      {"trend", "a statistic over the steps, with sparklines and change points", declare_trend, true, true, Format::kMarkdown,
       "table, json, jsonl, csv or markdown"},
      {"why", "why a tensor has no value", declare_why},
      {"source", "the program's lines with findings and statistics", declare_source, true, true, Format::kMarkdown,
       "table, json, jsonl or markdown"},
  };
  return kTable;
}

}  // namespace msdbg::app
