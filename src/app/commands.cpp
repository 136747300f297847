// The commands that live in files of their own. One line each.
#include "app/command.h"

namespace msdbg::app {

std::span<const CommandEntry> command_table() {
  static const std::vector<CommandEntry> kTable = {
      // {"diff", "where two runs part", declare_diff, .takes_steps = true},
  };
  return kTable;
}

}  // namespace msdbg::app
