// Shared by the reports of msdbg/follow_report.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/session.h"

namespace msdbg::follow {

std::string markdown_line(const std::vector<std::string>& cells);
/// The header row and the line below it.
std::string markdown_head(const std::vector<std::string>& titles);

/// `fc2-Dense/MatMul-op0:output:0`, with rank, graph and execution if the session has several.
std::string tensor_text(const Session& session, const TensorId& id, bool full);
/// What follows the node's name there; `slot` is used as given.
std::string name_suffix(const Session& session, const TensorId& id, std::string slot);
/// The same of a tensor that `ranks` share; without ranks none is named.
std::string name_suffix(const Session& session, const TensorId& id, std::string slot, std::span<const int> ranks);
/// `104 of 192 -Inf`; the range of a tensor that is finite.
std::string values_text(const Stats& stats);
/// Adds `--step 0`, plus rank, graph and execution if a command needs them to identify the tensor.
void add_place(const Session& session, const TensorId& id, std::vector<std::string>* words);

}  // namespace msdbg::follow
