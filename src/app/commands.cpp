// All commands, in the order of the help.
#include <algorithm>

#include "app/command.h"

namespace msdbg::app {

CommandEntry bisect_command();
CommandEntry check_command();
CommandEntry ckpt_command();
CommandEntry completion_command();
CommandEntry convert_command();
CommandEntry demo_command();
CommandEntry diff_command();
CommandEntry doctor_command();
CommandEntry guide_command();
CommandEntry hist_command();
CommandEntry layers_command();
CommandEntry list_command();
CommandEntry listen_command();
CommandEntry nodes_command();
CommandEntry open_command();
CommandEntry origin_command();
CommandEntry plan_command();
CommandEntry propagation_command();
CommandEntry repl_command();
CommandEntry replicas_command();
CommandEntry report_command();
CommandEntry repro_command();
CommandEntry rules_command();
CommandEntry run_command();
CommandEntry show_command();
CommandEntry stats_command();
CommandEntry trend_command();
CommandEntry why_command();

std::span<const CommandEntry> command_table() {
  static const std::vector<CommandEntry> kTable = {
      origin_command(), check_command(), replicas_command(), demo_command(), repl_command(), open_command(), listen_command(),
      run_command(), nodes_command(), stats_command(), layers_command(), doctor_command(), show_command(), hist_command(),
      rules_command(), diff_command(), bisect_command(), trend_command(), propagation_command(), why_command(), list_command(),
      report_command(), repro_command(), convert_command(), guide_command(), plan_command(), ckpt_command(), completion_command(),
  };
  return kTable;
}

const CommandEntry* find_command(std::string_view name) {
  const auto table = command_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const CommandEntry& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace msdbg::app
