#include "session/dump/metadata.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "msdbg/file.h"
#include "session/dump/directory.h"
#include "session/dump/file_name.h"
#include "session/dump/layout.h"

namespace msdbg::dump {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kJsonLimit = uint64_t{16} << 20;

Result<Json> read_json(const std::string& path) {
  const Result<std::string> text = read_text(path, kJsonLimit);
  if (!text) return text.status();
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) return Status(Code::kCorrupt, path + ": is not JSON");
  return json;
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() && found->is_string() ? printable(found->get<std::string>()) : "";
}

/// Numbers may be stored as numbers or as text.
std::optional<int64_t> number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX) return std::nullopt;
  if (found->is_number_integer()) return found->get<int64_t>();
  return found->is_string() ? parse_digits(found->get<std::string>()) : std::nullopt;
}

}  // namespace

Metadata read_metadata(const std::string& directory, std::vector<Problem>& problems) {
  Metadata metadata;
  for (const char* folder : {".dump_metadata", ".metadata"}) {
    const std::string path = join_path(directory, folder);
    const auto read = [&](const char* name, auto take) {
      const std::string file = join_path(path, name);
      const Result<Json> json = read_json(file);
      if (json) {
        take(*json);
      } else if (json.status().code() != Code::kNotFound) {
        add_problem(problems, Severity::kWarning, file, without_path(json.status(), file).message());
      }
    };
    read("config.json", [&](const Json& json) {
      metadata.framework_version = text_of(json, "ms_version");
      metadata.device_target = text_of(json, "device_target");
    });
    read("data_dump.json", [&](const Json& json) {
      if (json.is_object() && json.contains("common_dump_settings")) {
        metadata.net_name = text_of(json["common_dump_settings"], "net_name");
        metadata.all_operators = number_of(json["common_dump_settings"], "dump_mode") == 0;
      }
    });
  }
  return metadata;
}

Result<std::vector<OverflowEntry>> read_overflow_record(const std::string& path) {
  const Result<Json> json = read_json(path);
  if (!json) return json.status();
  std::vector<OverflowEntry> flagged;
  if (json->is_object()) {
    // The operator's numbers are in the block of the unit that raised the flag; unused blocks contain zeros.
    for (const auto& [name, block] : json->items()) {
      if (!block.is_object()) continue;
      const std::optional<int64_t> task = number_of(block, "task_id"), stream = number_of(block, "stream_id");
      const std::optional<int64_t> status = number_of(block, "status");
      if (task && stream && (*task != 0 || *stream != 0 || status.value_or(1) != 0))
        flagged.push_back({*task, *stream, name});
    }
  }
  if (flagged.empty() && (!json->is_object() || json->empty())) {
    return Status(Code::kCorrupt, path + ": no block with task_id and stream_id");
  }
  return flagged;
}

}  // namespace msdbg::dump
