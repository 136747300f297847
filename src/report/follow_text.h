// What the reports of msdbg/follow_report.h share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "msdbg/session.h"

namespace msdbg::follow {

std::string markdown_line(const std::vector<std::string>& cells);
/// The line of titles and the line below it.
std::string markdown_head(const std::vector<std::string>& titles);

/// `fc2-Dense/MatMul-op0:output:0` with rank, graph and execution where the session has several.
std::string tensor_text(const Session& session, const TensorId& id, bool full);
/// What follows the name of the node there; `slot` as it is written.
std::string behind_name(const Session& session, const TensorId& id, std::string slot);
/// Adds `--step 0`, and rank, graph and execution as far as they are needed to name the tensor in a command.
void add_place(const Session& session, const TensorId& id, std::vector<std::string>* words);

}  // namespace msdbg::follow
