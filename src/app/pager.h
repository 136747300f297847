// Long texts on a terminal go through the user's pager.
#pragma once

#include <string_view>

namespace msdbg::app {

/// Shows `text`, which visible() has defused, through MSDBG_PAGER, else PAGER, else less, when standard output is a terminal that it
/// does not fit on. False where nothing was shown: it fits, there is no terminal, the variable is empty or "cat", or the pager cannot be
/// started. A pager that is left early is not an error.
bool page(std::string_view text);

}  // namespace msdbg::app
