// The mapping file, and the names of the matching methods.
#include <fmt/format.h>

#include "msdbg/diff.h"

namespace msdbg {

std::string_view match_method_name(MatchMethod how) {
  switch (how) {
    case MatchMethod::kMap: return "map";
    case MatchMethod::kName: return "name";
    case MatchMethod::kStructure: return "structure";
    case MatchMethod::kValue: return "value";
  }
  return "name";
}

Result<NameMap> parse_name_map(std::string_view text, std::string_view source) {
  NameMap map;
  map.source = source;
  int number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find(" = ");
    if (equals == std::string_view::npos || trim(line.substr(0, equals)).empty() || trim(line.substr(equals + 3)).empty()) {
      return Status(Code::kInvalidArgument, fmt::format("{}:{}: '{}' is not of the form NAME_A = NAME_B", source, number, printable(line)));
    }
    map.entries.push_back({std::string(trim(line.substr(0, equals))), std::string(trim(line.substr(equals + 3))), number});
  }
  return map;
}

}  // namespace msdbg
