// The answer of msdbg/replicas.h as a tree and as text. The session's owner thread only.
#pragma once

#include <string>

#include "msdbg/answers.h"
#include "msdbg/replicas.h"

namespace msdbg {

Answer replicas_answer(const Session& session, const ReplicasResult& result);
/// Formats: table, JSON, JSON lines, csv, markdown; csv, markdown and JSON lines have a row for each difference.
std::string replicas_report(const Session& session, const ReplicasResult& result, const ReportStyle& style);
/// `fc1.weight of rank 1 differs from the other replicas from step 1 on`
std::string replica_headline(const Session& session, const ReplicaDifference& difference, const ReportStyle& style);

}  // namespace msdbg
