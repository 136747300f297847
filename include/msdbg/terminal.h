// Text on its way to a terminal, a pipe or a file.
#pragma once

#include <string>
#include <string_view>

namespace msdbg {

/// `text` with what steers terminals made visible: control characters other than newline and tab, C1 controls and bytes that
/// are no UTF-8 become `\x1b`. Names and values come from files, and a file may hold anything.
/// `colours` lets the sequences pass that only choose a colour (`ESC [ ... m`), since the program writes such.
std::string visible(std::string_view text, bool colours);

}  // namespace msdbg
