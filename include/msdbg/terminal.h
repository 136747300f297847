// Text on its way to a terminal, a pipe or a file.
#pragma once

#include <optional>
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

/// Columns that `text` takes on a terminal: two for wide East Asian characters, none for combining marks and the colours of this program.
size_t display_width(std::string_view text);

/// The first columns of a text; a character is never cut, colours do not count.
std::string_view head(std::string_view text, size_t columns);

/// The columns that text for people is laid out for, 60 at least: those of the terminal that standard output is, or COLUMNS where that
/// is set. Nothing in a pipe or a file, where no line is too long. MSDBG_WIDTH sets them for any output.
std::optional<size_t> layout_width();

/// Lines longer than `width` are broken at blanks. What follows stands below the text behind the label of a line (`next: ...`,
/// `  inputs     ...`). A command behind `next: msdbg` is continued with a backslash, so that it can be pasted.
std::string wrapped(std::string_view text, size_t width);

}  // namespace msdbg
