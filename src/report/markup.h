// Escaping of text for CSV and Markdown. For XML and HTML see xml_text() in msdbg/picture.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msdbg {

/// RFC 4180: quoted if it contains a separator, a quote or a line end.
std::string csv_field(std::string_view text);
std::string csv_line(const std::vector<std::string>& fields);
/// A cell of a Markdown table that shows the text literally: names contain `_` and `*`, and a `|` would end the cell.
std::string markdown_cell(std::string_view text);

}  // namespace msdbg
