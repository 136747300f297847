// Encodes the described graph as a GraphProto. Source: proto/debug_graph.proto, docs/live-protocol.md.
#pragma once

#include <string>

#include "agent/release_traits.h"

namespace msdbg::agent {

/// Error: kUnsupported above the 2 GiB limit of protobuf.
Result<std::string> graph_bytes(const GraphDescription& graph, const ReleaseTraits& traits);


}  // namespace msdbg::agent
