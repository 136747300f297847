// Text on its way to a terminal, a pipe or a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace msdbg {

/// The last step before a terminal: makes everything in `text` that controls a terminal visible as `\x1b`: control characters other
/// than newline and tab, C1 controls, characters that change the text direction, invalid UTF-8. `colours` allows the colours of
/// this program and nothing else. It cannot know where a newline comes from: text from a file, a peer or a script must pass
/// printable() before it is put into a line.
std::string visible(std::string_view text, bool colours);

/// The same for JSON without changing its value: such characters become `\u009b`.
std::string visible_json(std::string_view text);

/// The width of `text` on a terminal: two columns for wide East Asian characters, none for combining marks and the colours of this
/// program.
size_t display_width(std::string_view text);

/// The first columns of a text; never cuts a character, and does not count colours.
std::string_view head(std::string_view text, size_t columns);

/// The width for laying out text, at least 60: that of the terminal on standard output, or COLUMNS if set. nullopt for a pipe or a
/// file, where no line is too long. MSDBG_WIDTH sets it for any output.
std::optional<size_t> layout_width();

/// Wraps lines longer than `width` at blanks. Continuation lines are indented to the text after the label of a line (`next: ...`, `
/// inputs     ...`). A command after `next: msdbg` is continued with a backslash and can be pasted.
std::string wrapped(std::string_view text, size_t width);

}  // namespace msdbg
