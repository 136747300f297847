// Histograms as a tree and as text. The session's owner thread only.
#pragma once

#include <string>

#include "msdbg/answers.h"
#include "msdbg/histogram.h"

namespace msdbg {

Answer histogram_answer(const Session& session, const HistogramResult& result);
/// Formats: table, JSON, JSON lines, csv (a row for each bin), markdown. `log_counts`: heights show the logarithm of the counts, which
/// makes rare values visible.
std::string histogram_report(Session& session, const HistogramResult& result, const ReportStyle& style, bool log_counts = false,
                             bool ascii = false);
/// One histogram as bars, a line for each bin.
std::string histogram_text(const Histogram& histogram, size_t width = 60, bool log_counts = false, bool ascii = false);

}  // namespace msdbg
