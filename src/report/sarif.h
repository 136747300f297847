// Shared by all our SARIF 2.1.0 logs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "msdbg/report.h"

namespace msdbg::sarif {

using Json = nlohmann::ordered_json;

std::string_view level_of(Severity severity);
/// The user's source line, if the graph knows it, and the tensor's name.
Json location_of(const Node& node, const Slot& slot);
Json notification(std::string_view level, std::string text);

/// One complete run: `rules` and `results` refer to one another by index.
struct Run {
  Json rules = Json::array(), results = Json::array(), notes = Json::array();
  Json properties = Json::object();
  bool successful = true;
  int exit_status = 0;
};
std::string log_text(Run run);

}  // namespace msdbg::sarif
