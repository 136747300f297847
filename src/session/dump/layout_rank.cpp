// Layout R, since 1.3: rank_N / net / graph / step. And a single directory of tensor files.
#include <fmt/format.h>

#include <limits>

#include "session/dump/file_name.h"
#include "session/dump/layout.h"

namespace msdbg::dump {
namespace {

std::optional<int> small_number(std::optional<int64_t> value) {
  if (!value || *value > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*value);
}

class RankScan {
 public:
  RankScan(RankDirectory& rank, std::vector<Problem>& problems, DirectoryLister& lister)
      : rank_(rank), problems_(problems), lister_(lister) {}

  void run() {
    visited_.enter(rank_.path);
    for (const DirectoryEntry& net : list(rank_.path)) {
      // `_` is the writer's scratch directory in 1.3 and only holds copies.
      if (!net.directory || net.name.starts_with('.') || net.name == "graphs" || net.name == "execution_order" ||
          net.name == "debug_files" || net.name == "_") {
        continue;
      }
      scan_net(join_path(rank_.path, net.name), std::string(net.name));
    }
  }

 private:
  Listing list(const std::string& path) {
    Result<Listing> entries = lister_.list(path);
    if (entries) return std::move(*entries);
    add_problem(problems_, Severity::kError, path, "cannot be listed: " + entries.status().message());
    return {};
  }

  bool enter(const std::string& path) {
    if (visited_.enter(path)) return true;
    add_problem(problems_, Severity::kWarning, path,
                "leads to a directory that is listed already, or nowhere; left out");
    return false;
  }

  void scan_net(const std::string& path, const std::string& net) {
    if (!enter(path)) return;
    for (const DirectoryEntry& entry : list(path)) {
      const std::optional<int> graph = small_number(parse_digits(entry.name));
      if (entry.directory && graph) scan_graph(join_path(path, entry.name), net, *graph);
    }
  }

  void scan_graph(const std::string& path, const std::string& net, int graph) {
    if (!enter(path)) return;
    for (const DirectoryEntry& entry : list(path)) {
      const std::optional<int64_t> step = parse_digits(entry.name);
      const bool constants = entry.name == "constants";
      if (!step && !constants) continue;
      const std::string data = join_path(path, entry.name);
      if (!entry.directory) {
        add_problem(problems_, Severity::kWarning, data,
                    entry.link ? "is a link that leads nowhere" : "is a file where a directory of a step belongs");
        continue;
      }
      if (enter(data)) rank_.data.push_back({data, net, graph, step.value_or(0), constants});
    }
  }

  RankDirectory& rank_;
  std::vector<Problem>& problems_;
  DirectoryLister& lister_;
  Visited visited_;
};

std::optional<int> rank_of(const std::string& name) { return small_number(number_after(name, "rank_")); }

bool has(const Listing& entries, std::string_view name) {
  for (const DirectoryEntry& entry : entries) {
    if (entry.directory && entry.name == name) return true;
  }
  return false;
}

}  // namespace

std::optional<Layout> find_rank_layout(const std::string& path, const Listing& entries, DirectoryLister& lister) {
  Layout layout;
  layout.kind = "R";
  layout.root = path;
  for (const DirectoryEntry& entry : entries) {
    const std::optional<int> rank = rank_of(std::string(entry.name));
    if (rank && entry.directory) layout.ranks.push_back({*rank, join_path(path, entry.name), {}});
  }
  if (layout.ranks.empty()) {
    // One level too deep: this is itself a rank, with an unknown number if its name does not tell. (The oldest layout also has
    // `graphs` and `execution_order`, next to its iteration directories.)
    const std::optional<int> rank = rank_of(base_name(path));
    const bool inside = has(entries, ".dump_metadata") || has(entries, "graphs") || has(entries, "execution_order");
    if (!rank && !inside) return std::nullopt;
    for (const DirectoryEntry& entry : entries) {
      if (number_after(entry.name, "iteration_")) return std::nullopt;
    }
    if (rank && path.find('/') != std::string::npos) layout.root = parent_path(path);
    layout.ranks.push_back({rank.value_or(0), path, {}});
  }
  for (RankDirectory& rank : layout.ranks) RankScan(rank, layout.problems, lister).run();
  if (!rank_of(base_name(path)) && layout.root == path && layout.ranks.size() == 1 && layout.ranks[0].path == path &&
      layout.ranks[0].data.empty()) {
    return std::nullopt;  // `graphs` or `execution_order` alone do not make a dump
  }
  return layout;
}

std::optional<Layout> find_plain_files(const std::string& path, const Listing& entries) {
  bool found = false;
  for (const DirectoryEntry& entry : entries) {
    if (entry.directory) continue;
    const FileKind kind = parse_file_name(entry.name).kind;
    found = found || kind == FileKind::kNpy || kind == FileKind::kRaw || kind == FileKind::kDevice ||
            kind == FileKind::kStatistics || entry.name.ends_with(".npy");
  }
  if (!found) return std::nullopt;
  Layout layout;
  layout.kind = "files";
  layout.root = path;
  layout.ranks.push_back({0, path, {{path, "", 0, 0, false}}});
  // A step's directory alone lacks the graph and the other steps.
  std::string above = path;
  for (int level = 0; level < 3; ++level) above = parent_path(above);
  if (rank_of(base_name(above))) {
    add_problem(layout.problems, Severity::kWarning, path,
                fmt::format("is one step of a dump: open {} for its graph and the other steps", parent_path(above)));
  }
  return layout;
}

}  // namespace msdbg::dump
