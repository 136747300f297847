// The JSON of docs/json.md. No JSON type leaves the files behind it.
#pragma once

#include <string>
#include <vector>

#include "msdbg/report.h"

namespace msdbg::json {

// `lines`: one object a line (JSON lines) instead of one object.
std::string check(const Session& session, const CheckResult& result, const ReportStyle& style);
std::string origins(Session& session, const OriginResult& result, bool lines);
std::string stats(const Session& session, const std::vector<StatsRow>& rows, bool lines);
std::string nodes(const Session& session, const std::vector<NodeRef>& nodes, bool lines);
std::string doctor(const Session& session, const SessionReport& report, bool lines);

}  // namespace msdbg::json
