// What the reports of msdbg/follow_report.h share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "msdbg/session.h"

namespace msdbg::follow {

using Json = nlohmann::ordered_json;

/// Numbers that JSON cannot hold become the strings of docs/json.md; nullopt is null.
Json number(const std::optional<double>& value);
/// {rank, graph, graph_id, step, execution, node, op, slot}
Json place(const Session& session, const TensorId& id);
/// The object under "stats"; null without.
Json stats(Session& session, const std::optional<Stats>& stats, const std::optional<TensorId>& id);
Json frames(const Node& node);
/// One line, or indented as one object; with a newline at the end. Bytes that are no UTF-8 are replaced.
std::string text(const Json& json, bool pretty);

std::string markdown_line(const std::vector<std::string>& cells);
/// The line of titles and the line below it.
std::string markdown_head(const std::vector<std::string>& titles);

/// `fc2-Dense/MatMul-op0:output:0` with rank, graph and execution where the session has several.
std::string tensor_text(const Session& session, const TensorId& id, bool full);
/// ` --rank 1 --graph 2 --execution 3` as far as they are needed to name the tensor on a command line.
std::string place_words(const Session& session, const TensorId& id);

}  // namespace msdbg::follow
