#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/why.h"

namespace msdbg {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMostBytes = uintmax_t{16} << 20;

std::optional<std::string> text_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMostBytes || error) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::optional<bool> DumpSettings::wants_step(int64_t step) const {
  if (iteration.empty()) return std::nullopt;
  if (iteration == "all") return true;
  for (std::string_view item : split(iteration, '|')) {
    const size_t dash = item.find('-');
    const auto from = parse_int(item.substr(0, dash));
    const auto to = dash == std::string_view::npos ? from : parse_int(item.substr(dash + 1));
    if (!from || !to) return std::nullopt;
    if (*from <= step && step <= *to) return true;
  }
  return false;
}

std::string rank_directory(const Session& session, const Graph& graph) {
  std::error_code error;
  if (!graph.source_path().empty()) {
    const fs::path folder = fs::path(graph.source_path()).parent_path();
    if (folder.filename() == "graphs") return folder.parent_path().string();
  }
  const fs::path root(session.info().source), inside = root / fmt::format("rank_{}", graph.rank());
  if (fs::is_directory(inside, error)) return inside.string();
  return fs::is_directory(root, error) ? root.string() : "";
}

DumpSettings read_settings(const std::string& directory) {
  DumpSettings settings;
  if (directory.empty()) return settings;
  for (const char* folder : {".dump_metadata", ".metadata"}) {
    const fs::path path = fs::path(directory) / folder / "data_dump.json";
    const std::optional<std::string> text = text_of(path);
    if (!text) continue;
    const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
    const auto common = json.is_object() ? json.find("common_dump_settings") : json.end();
    if (!json.is_object() || common == json.end() || !common->is_object()) continue;
    auto number = [&](const char* key) -> std::optional<int64_t> {
      const auto found = common->find(key);
      return found != common->end() && found->is_number_integer() ? std::optional(found->get<int64_t>()) : std::nullopt;
    };
    auto word = [&](const char* key) {
      const auto found = common->find(key);
      return found != common->end() && found->is_string() ? printable(found->get<std::string>()) : std::string();
    };
    settings.path = path.string();
    settings.dump_mode = number("dump_mode");
    settings.input_output = number("input_output");
    settings.op_debug_mode = number("op_debug_mode");
    settings.iteration = word("iteration");
    settings.saved_data = word("saved_data");
    if (const auto kernels = common->find("kernels"); kernels != common->end() && kernels->is_array()) {
      for (const auto& kernel : *kernels) {
        if (kernel.is_string()) settings.kernels.push_back(printable(kernel.get<std::string>()));
      }
    }
    break;
  }
  return settings;
}

GraphHistory read_history(const std::string& directory, int graph) {
  GraphHistory history;
  if (directory.empty()) return history;
  const fs::path path = fs::path(directory) / "execution_order" / fmt::format("ms_global_execution_order_graph_{}.csv", graph);
  const std::optional<std::string> text = text_of(path);
  if (!text) return history;
  history.path = path.string();
  for (std::string_view line : split(*text, '\n')) {
    if (const auto step = parse_int(trim(line))) history.steps.push_back(*step);
  }
  std::sort(history.steps.begin(), history.steps.end());
  history.steps.erase(std::unique(history.steps.begin(), history.steps.end()), history.steps.end());
  return history;
}

std::optional<size_t> listed_at(const std::string& directory, const Graph& graph, const Node& node, std::string* path) {
  const fs::path file = fs::path(directory) / "execution_order" / fmt::format("ms_execution_order_graph_{}.csv", graph.id());
  const std::optional<std::string> text = directory.empty() ? std::nullopt : text_of(file);
  if (!text) return std::nullopt;
  *path = file.string();
  size_t at = 0;
  for (std::string_view line : split(*text, '\n')) {
    if (trim(line) == node.name) return at;  // the first line is a title
    ++at;
  }
  return std::nullopt;
}

}  // namespace msdbg
