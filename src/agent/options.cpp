// The environment variables of MindSpore's own debugger client.
#include <fmt/format.h>

#include <cstdlib>

#include "msdbg/agent.h"

namespace msdbg::agent {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

/// A decimal number without sign or leading zeros.
std::optional<int64_t> plain_number(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
  }
  return parse_int(text);
}

bool is_address(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '.');
  if (parts.size() != 4) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto number = plain_number(parts[i]);
    const bool end = i == 0 || i == 3;
    if (!number || *number > (end ? 254 : 255) || *number < (end ? 1 : 0)) return false;
  }
  return true;
}

}  // namespace

Result<Options> options_from_environment() {
  Options options;
  const std::string enable = environment("ENABLE_MS_DEBUGGER");
  options.enabled = enable == "1" || to_lower(enable) == "true";
  const std::string rank = environment("RANK_ID");
  const auto number_of_rank = plain_number(rank);
  if (number_of_rank) options.rank = static_cast<int>(*number_of_rank);
  // The other variables, and mistakes, matter only if the training is to be debugged.
  if (!options.enabled) return options;
  if (!rank.empty() && !number_of_rank) {
    return Status(Code::kInvalidArgument,
                  fmt::format("RANK_ID is '{}': use a number from 0 to 99999, without leading zeros", printable(rank)));
  }
  if (const std::string host = environment("MS_DEBUGGER_HOST"); !host.empty()) {
    if (!is_address(host)) {
      return Status(
          Code::kInvalidArgument,
          fmt::format("MS_DEBUGGER_HOST is '{}': use an IPv4 address such as 127.0.0.1, with 1 to 254 at both "
                      "ends and 0 to 255 between; names are not accepted",
                      printable(host)));
    }
    options.host = host;
  }
  if (const std::string port = environment("MS_DEBUGGER_PORT"); !port.empty()) {
    const auto number = plain_number(port);
    if (!number || *number < 1 || *number > 65535) {
      return Status(Code::kInvalidArgument,
                    fmt::format("MS_DEBUGGER_PORT is '{}': use a number from 1 to 65535, without "
                                "leading zeros",
                                printable(port)));
    }
    options.port = static_cast<int>(*number);
  }
  return options;
}

}  // namespace msdbg::agent
