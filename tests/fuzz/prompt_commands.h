// The commands that the target `prompt` types, by position in this list: add new ones at the end.
#pragma once

#include <string_view>

namespace msdbg::fuzz {

inline constexpr std::string_view kCommands[] = {
    "rules",  "diff",    "bisect", "trend",  "propagation", "why",     "list", "watch", "watches", "check", "recheck", "hits",
    "origin", "bt",      "help",   "apropos", "undisplay",  "nodes",   "node", "inputs", "outputs", "tensors", "stats", "info",
    "explain", "goto",   "step",   "next",   "run_to",      "continue", "run", "pause", "show",    "hist",  "heatmap", "worst",
    "where",  "terminate", "detach", "quit", "display",     "x"};

}  // namespace msdbg::fuzz
