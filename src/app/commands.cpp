// The commands that live in files of their own. One line each.
#include "app/command.h"

namespace msdbg::app {

Action declare_bisect(CLI::App& app);
Action declare_trend(CLI::App& app);

std::span<const CommandEntry> command_table() {
  static const std::vector<CommandEntry> kTable = {
      // {"diff", "where two runs part", declare_diff, .takes_steps = true},
      {"bisect", "the first step in which something holds", declare_bisect, true},
      {"trend", "a statistic over the steps, with sparklines and change points", declare_trend, true, true, Format::kMarkdown,
       "table, json, jsonl, csv or markdown"},
  };
  return kTable;
}

}  // namespace msdbg::app
