// Text on its way to a terminal, a pipe or a file.
#pragma once

#include <string>
#include <string_view>

namespace msdbg {

/// The last step before a terminal: `text` with everything that controls one made visible as `\x1b`: control characters other than
/// newline and tab, C1 controls, what changes the direction of text, bytes that are not UTF-8. `colours` lets the colours of this
/// program pass and nothing else. It cannot know whose a newline is: text from a file, a peer or a script passes printable() where
/// it is put into a line.
std::string visible(std::string_view text, bool colours);

/// The same for JSON, whose value does not change: such characters become `\u009b`.
std::string visible_json(std::string_view text);

}  // namespace msdbg
