// Shows long texts on a terminal in the user's pager.
#pragma once

#include <string_view>

namespace msdbg::app {

/// Shows `text`, which visible() has made safe, in MSDBG_PAGER, PAGER or less when standard output is a terminal that it does not
/// fit on. Returns false if nothing was shown: the text fits, there is no terminal, the variable is empty or "cat", or the pager
/// does not start. Leaving the pager early is not an error.
bool page(std::string_view text);

}  // namespace msdbg::app
