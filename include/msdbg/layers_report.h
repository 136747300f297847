// The answer of msdbg/layers.h as a tree and as text. The session's owner thread only.
#pragma once

#include <string>

#include "msdbg/answers.h"
#include "msdbg/layers.h"

namespace msdbg {

Answer layers_answer(Session& session, const LayersResult& result);
/// Formats: table, JSON, JSON lines, csv, markdown. `ascii`: sparklines of plain characters.
std::string layers_report(Session& session, const LayersResult& result, const ReportStyle& style, bool ascii = false);

}  // namespace msdbg
