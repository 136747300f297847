// Layouts of 1.0 to 1.2: net / device_N / iteration_M, net / iteration_M, device_N / net_graph_G / G / M.
// And layout G, the Ascend graph engine of 2.3 to 2.6: step / time / device / model / model id / iteration.
#include <algorithm>
#include <limits>
#include <map>

#include "session/dump/file_name.h"
#include "session/dump/layout.h"

namespace msdbg::dump {
namespace {

constexpr size_t kTimeDigits = 14;  // YYYYMMDDhhmmss
constexpr int kGeDepth = 8;

Listing directories(const std::string& path) {
  Result<Listing> entries = list_directory(path);
  if (!entries) return {};
  std::erase_if(entries->entries, [](const DirectoryEntry& entry) { return !entry.directory; });
  return std::move(*entries);
}

int to_int(int64_t value) { return static_cast<int>(std::min<int64_t>(value, std::numeric_limits<int>::max())); }

RankDirectory& rank_at(Layout& layout, int rank, const std::string& path) {
  for (RankDirectory& known : layout.ranks) {
    if (known.rank == rank) return known;
  }
  layout.ranks.push_back({rank, path, {}});
  return layout.ranks.back();
}

/// The iteration directories directly in `path`.
bool add_iterations(Layout& layout, const std::string& path, const Listing& below, const std::string& net, int rank) {
  bool found = false;
  for (const DirectoryEntry& entry : below) {
    const std::optional<int64_t> step = number_after(entry.name, "iteration_");
    if (!entry.directory || !step) continue;
    rank_at(layout, rank, path).data.push_back({join_path(path, entry.name), net, 0, *step, false});
    found = true;
  }
  return found;
}

/// `{net}_graph_{G}`
std::optional<std::pair<std::string, int64_t>> net_and_graph(const std::string& name) {
  const size_t at = name.rfind("_graph_");
  if (at == std::string::npos || at == 0) return std::nullopt;
  const std::optional<int64_t> graph = parse_digits(std::string_view(name).substr(at + 7));
  if (!graph) return std::nullopt;
  return std::pair(name.substr(0, at), *graph);
}

bool add_async_device(Layout& layout, const std::string& path, int rank) {
  bool found = false;
  for (const DirectoryEntry& model : directories(path)) {
    const auto named = net_and_graph(std::string(model.name));
    if (!named) continue;
    const std::string model_path = join_path(path, model.name);
    for (const DirectoryEntry& third : directories(model_path)) {
      if (!parse_digits(third.name)) continue;  // the graph id repeated, or the mode of an overflow run
      const std::string third_path = join_path(model_path, third.name);
      for (const DirectoryEntry& step : directories(third_path)) {
        const std::optional<int64_t> number = parse_digits(step.name);
        if (!number) continue;
        rank_at(layout, rank, path)
            .data.push_back({join_path(third_path, step.name), named->first, to_int(named->second), *number, false});
        found = true;
      }
    }
  }
  return found;
}

struct GeLeaf {
  std::string path;
  int device = 0, model_id = 0;
  std::string model;
};

bool holds_tensors(const Listing& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
    if (entry.directory) return false;
    const FileKind kind = parse_file_name(entry.name).kind;
    return kind == FileKind::kNpy || kind == FileKind::kDevice || kind == FileKind::kStatistics ||
           kind == FileKind::kOverflow;
  });
}

/// The depth below the time differs between releases: files mark a leaf.
void find_leaves(const std::string& path, std::vector<std::string>& components, std::vector<GeLeaf>& leaves,
                 Visited& visited) {
  if (components.size() > kGeDepth || !visited.enter(path)) return;
  const Result<Listing> entries = list_directory(path);
  if (!entries) return;
  if (holds_tensors(*entries)) {
    GeLeaf leaf{path, 0, 0, ""};
    if (!components.empty()) leaf.device = to_int(parse_digits(components.front()).value_or(0));
    if (components.size() >= 3) leaf.model_id = to_int(parse_digits(components[components.size() - 2]).value_or(0));
    if (components.size() >= 4) leaf.model = components[components.size() - 3];
    leaves.push_back(std::move(leaf));
  }
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.directory) continue;
    components.emplace_back(entry.name);
    find_leaves(join_path(path, entry.name), components, leaves, visited);
    components.pop_back();
  }
}

}  // namespace

std::optional<Layout> find_old_layout(const std::string& path, const Listing& entries) {
  Layout layout;
  layout.root = path;
  for (const DirectoryEntry& entry : entries) {
    const std::optional<int64_t> device = number_after(entry.name, "device_");
    if (!entry.directory || !device) continue;
    if (add_async_device(layout, join_path(path, entry.name), to_int(*device))) layout.kind = "V-async";
  }
  if (!layout.kind.empty()) return layout;
  // The user may have named the net or the device, which is one or two levels too deep.
  if (add_iterations(layout, path, entries, base_name(path),
                     to_int(number_after(base_name(path), "device_").value_or(0)))) {
    layout.kind = number_after(base_name(path), "device_") ? "V-sync" : "V-cpu";
    return layout;
  }
  for (const DirectoryEntry& net : entries) {
    if (!net.directory || net.name.starts_with('.')) continue;
    const std::string net_path = join_path(path, net.name);
    const std::optional<int64_t> named_device = number_after(net.name, "device_");
    const Listing below = directories(net_path);
    for (const DirectoryEntry& entry : below) {
      const std::optional<int64_t> device = number_after(entry.name, "device_");
      if (!device) continue;
      const std::string device_path = join_path(net_path, entry.name);
      if (add_iterations(layout, device_path, directories(device_path), std::string(net.name), to_int(*device)))
        layout.kind = "V-sync";
    }
    const std::string name = named_device ? base_name(path) : std::string(net.name);
    if (add_iterations(layout, net_path, below, name, to_int(named_device.value_or(0)))) {
      layout.kind = named_device ? "V-sync" : "V-cpu";
    }
  }
  if (layout.kind.empty()) return std::nullopt;
  return layout;
}

std::optional<Layout> find_ge_layout(const std::string& path, const Listing& entries) {
  Layout layout;
  layout.kind = "G";
  layout.root = path;
  bool control_file = false;
  for (const DirectoryEntry& entry : entries) {
    control_file = control_file || (entry.name.starts_with("acl_dump_") && entry.name.ends_with(".json"));
    const std::optional<int64_t> step = parse_digits(entry.name);
    if (!entry.directory || !step) continue;
    const std::string step_path = join_path(path, entry.name);
    Listing times = directories(step_path);
    std::erase_if(
        times.entries, [](const DirectoryEntry& time) { return time.name.size() != kTimeDigits || !parse_digits(time.name); });
    // Several times mean that the same step was dumped several times; use the newest of each device.
    std::map<int, std::string> newest;
    std::vector<std::pair<std::string, GeLeaf>> leaves;
    for (const DirectoryEntry& time : times) {
      std::vector<GeLeaf> found;
      std::vector<std::string> components;
      Visited visited;
      find_leaves(join_path(step_path, time.name), components, found, visited);
      for (GeLeaf& leaf : found) {
        newest[leaf.device] = std::max(newest[leaf.device], std::string(time.name));
        leaves.emplace_back(time.name, std::move(leaf));
      }
    }
    for (const auto& [time, leaf] : leaves) {
      if (newest[leaf.device] != time) {
        add_problem(layout.problems, Severity::kInfo, leaf.path, "an earlier activation of this step; left out");
        continue;
      }
      rank_at(layout, leaf.device, path).data.push_back({leaf.path, leaf.model, leaf.model_id, *step, false});
    }
  }
  if (layout.ranks.empty() && !control_file) return std::nullopt;
  if (layout.ranks.empty()) layout.ranks.push_back({0, path, {}});
  return layout;
}

}  // namespace msdbg::dump
