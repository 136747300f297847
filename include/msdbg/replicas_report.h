// The answer of msdbg/replicas.h as a tree and as text. The session's owner thread only.
#pragma once

#include <string>

#include "msdbg/answers.h"
#include "msdbg/replicas.h"

namespace msdbg {

Answer replicas_answer(const Session& session, const ReplicasResult& result);
/// Formats: table, JSON, JSON lines, csv, markdown; csv, markdown and JSON lines have a row for each difference.
std::string replicas_report(const Session& session, const ReplicasResult& result, const ReportStyle& style);

}  // namespace msdbg
