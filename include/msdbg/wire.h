// Converts MindSpore's graph messages to our graph model. This module is one of the few users of generated protobuf code; none of
// it is visible here.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/base.h"
#include "msdbg/graph.h"

namespace msdbg {

/// Reads `ms_output_trace_code_graph_{id}.pb`: a ModelProto of the debugger flavour (the irpb flavour and a bare GraphProto are
/// recognised, too). Adds nodes, parameters and constants; the execution order is the file's until the caller sets another.
///
/// `notes` receives remarks about odd but tolerable input (names that are not UTF-8, edges to unknown nodes).
/// Error: kNotFound, kIoError, kInterrupted; kCorrupt if the bytes are not a graph or end early.
/// Source: proto/debug_graph.proto; docs/dump-format.md.
Result<GraphBuilder> read_graph_file(const std::string& path, int rank, int id, std::vector<std::string>* notes);
Result<GraphBuilder> parse_graph(std::span<const std::byte> bytes, int rank, int id, std::vector<std::string>* notes);

/// The code stack of NodeProto.source_address, in all formats since 1.3; innermost frame first, without the whole-function frames
/// of newer releases. Skips lines that are not locations.
std::vector<StackFrame> parse_source_address(std::string_view text);

}  // namespace msdbg
