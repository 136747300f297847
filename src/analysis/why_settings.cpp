#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "analysis/node_name.h"
#include "analysis/why.h"
#include "msdbg/file.h"

namespace msdbg {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = uint64_t{16} << 20;

/// An entry `name-regex(EXPR)` as a selector; nullopt for anything else and for invalid expressions.
std::optional<Selector> name_pattern(std::string_view kernel) {
  constexpr std::string_view kHead = "name-regex(";
  if (!kernel.starts_with(kHead) || !kernel.ends_with(')')) return std::nullopt;
  auto selector = Selector::parse(fmt::format("/{}/", kernel.substr(kHead.size(), kernel.size() - kHead.size() - 1)));
  return selector ? std::optional(std::move(*selector)) : std::nullopt;
}

bool takes(const std::string& kernel, const Graph& graph, const Node& node) {
  if (kernel == node.name || kernel == node.op) return true;
  if (const auto pattern = name_pattern(kernel)) return pattern->matches(graph, node);
  if (kernel.find('/') != std::string::npos || kernel.find("-op") != std::string::npos) return false;
  // A type matches every type that contains it; a parameter's name also matches moments.NAME.
  return node.kind == NodeKind::kOperator ? contains_nocase(node.op, kernel) : node.name.ends_with("." + kernel);
}

}  // namespace

bool DumpSettings::names(const Graph& graph, const Node& node) const {
  return std::any_of(kernels.begin(), kernels.end(), [&](const std::string& kernel) { return takes(kernel, graph, node); });
}

std::string DumpSettings::other_number(const Node& node) const {
  if (node.kind != NodeKind::kOperator) return "";
  for (const std::string& kernel : kernels) {
    if (kernel != node.name && without_number(kernel) == without_number(node.name) && without_number(kernel) != kernel) return kernel;
  }
  return "";
}

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
    const Result<std::string> text = read_text(path, kMostBytes);
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
  const Result<std::string> text = read_text(path, kMostBytes);
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
  if (directory.empty()) return std::nullopt;
  const fs::path file = fs::path(directory) / "execution_order" / fmt::format("ms_execution_order_graph_{}.csv", graph.id());
  const Result<std::string> text = read_text(file, kMostBytes);
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
