// Steps at whose end a training does not wait for a command, and the statistics that it tells of them.
#pragma once

#include <cstdint>
#include <vector>

#include "debug_grpc.pb.h"

namespace msdbg::live {

/// Lets the training that gets `command` go on at the ends of its next steps without asking for a command, except at the last one of
/// `ends`, and for a while only. A training that does not know this asks at each end.
void allow_ahead(debugger::RunCMD& command, uint64_t ends);

/// Moves from `metadata` to `into` what answers `report`, up to the number of steps that it keeps.
void take_ended(debugger::Metadata& metadata, const debugger::Report& report, std::vector<debugger::EndedStep>& into);

}  // namespace msdbg::live
