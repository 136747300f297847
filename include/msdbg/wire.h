// MindSpore's graph messages turned into our graph model. This module is one of the few users of generated
// protobuf code; none of it is visible here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/graph.h"

namespace msdbg {

/// Reads `ms_output_trace_code_graph_{id}.pb`: a ModelProto of the debugger flavour (the irpb flavour and a bare
/// GraphProto are recognised too). Nodes, parameters and constants are added; the execution order is the file's until
/// the caller sets another.
///
/// `notes` receives what was odd but survivable (names that are not UTF-8, edges to unknown nodes).
/// Error: kNotFound, kIoError, kInterrupted; kCorrupt when the bytes are not a graph or end early.
/// Source: proto/debug_graph.proto; docs/dump-format.md.
Result<GraphBuilder> read_graph_file(const std::string& path, int rank, int id, std::vector<std::string>* notes);
Result<GraphBuilder> parse_graph(std::span<const std::byte> bytes, int rank, int id, std::vector<std::string>* notes);

/// The code stack of NodeProto.source_address, all spellings from 1.3 on; innermost frame first, the whole-function
/// frames of newer releases left out. Lines that are not locations are skipped.
std::vector<StackFrame> parse_source_address(std::string_view text);

}  // namespace msdbg
