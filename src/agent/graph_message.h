// The described graph as the bytes of a GraphProto. Source: proto/debug_graph.proto, docs/live-protocol.md.
#pragma once

#include <string>

#include "agent/habits.h"

namespace msdbg::agent {

/// Error: kUnsupported above the 2 GiB that protobuf can hold.
Result<std::string> graph_bytes(const GraphDescription& graph, const Habits& habits);

/// "" at top level.
std::string_view scope_of(std::string_view full_name);

}  // namespace msdbg::agent
