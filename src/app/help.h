// Texts of --help: examples and exit statuses of each command.
#pragma once

#include <string>
#include <string_view>

namespace msdbg::app {

/// Examples and exit statuses, shown below the options of `command`; "" is the program itself.
std::string help_footer(std::string_view command);

}  // namespace msdbg::app
