// Where results and messages go: data to standard output or -o FILE, everything else to standard error.
#pragma once

#include <cstdio>
#include <string_view>

#include "app/options.h"

namespace msdbg::app {

/// Table style for the current terminal: colour and width only where standard output is one.
ReportStyle style_for(const Options& options);

/// Whether the terminal's locale has no UTF-8; files and pipes get it anyway.
bool plain_terminal();

/// Writes a finished result. A file is replaced completely or not at all. Error: kInterrupted when Ctrl-C came during the write.
Status write_result(const Options& options, std::string_view text);

/// Error: kIoError when anything printed so far, including by scripts, did not reach standard output.
Status flush_output();

/// Prints `msdbg: message` to standard error and returns the exit status for it.
int report_failure(const Status& status);

/// Prints messages and other text for people. All output passes through here or write_result(), where visible() of msdbg/terminal.h
/// makes it safe: text from a file or a peer cannot control the terminal. Ctrl-C ends both; false here.
bool print(FILE* to, std::string_view text, bool colours = false);

/// Like print() to standard output, but through the pager when a terminal has too few rows.
bool print_paged(std::string_view text, bool colours = false);

/// Prints a note on standard error; nothing with --quiet.
void note(const Options& options, std::string_view text);

/// Sends the log to standard error and to --log.
Status start_logging(const Options& options);

}  // namespace msdbg::app
