// Manual pages, made from the same declarations as --help.
#pragma once

#include <string>
#include <string_view>

#include "msdbg/base.h"

namespace msdbg::app {

/// msdbg(1), or for a command msdbg-COMMAND(1), in the man macros. Error: kInvalidArgument for an unknown command.
Result<std::string> manual_page(std::string_view command);

}  // namespace msdbg::app
