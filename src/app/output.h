// Where results and messages go: data to standard output or -o FILE, everything else to standard error.
#pragma once

#include <cstdio>
#include <string_view>

#include "app/options.h"

namespace msdbg::app {

/// Table style for the current terminal: colour and width only where standard output is one.
ReportStyle style_for(const Options& options);

/// Writes a finished result. A file is replaced as a whole or not at all. Error: kInterrupted when Ctrl-C came while it was written.
Status write_result(const Options& options, std::string_view text);

/// Error: kIoError when anything that was printed so far, by scripts too, did not reach standard output.
Status flush_output();

/// `msdbg: message` to standard error, and the exit status for it.
int report_failure(const Status& status);

/// Messages and other text for people. Everything that the program prints passes here or write_result(), where visible() of
/// msdbg/terminal.h has the last word: what a file or a peer wrote cannot steer the terminal. Ctrl-C ends both, with false here.
bool print(FILE* to, std::string_view text, bool colours = false);

/// The same for standard output, through the pager when a terminal has not enough rows for it.
bool print_paged(std::string_view text, bool colours = false);

/// A note on standard error; nothing with --quiet.
void note(const Options& options, std::string_view text);

/// Sends the log to standard error and to --log.
Status start_logging(const Options& options);

}  // namespace msdbg::app
