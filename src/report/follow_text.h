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
/// ` --rank 1 --graph 2 --execution 3` as far as they are needed to name the tensor on a command line.
std::string place_words(const Session& session, const TensorId& id);

}  // namespace msdbg::follow
