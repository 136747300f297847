#include "session/dump/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "session/dump/file_name.h"

namespace msdbg::dump {
namespace {

constexpr int kCandidateDepth = 3;
constexpr size_t kCandidateDirectories = 2000;
constexpr size_t kCandidates = 3;

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::optional<Layout> classify(const std::string& path, const Listing& entries, DirectoryLister& lister) {
  if (std::optional<Layout> layout = find_rank_layout(path, entries, lister)) return layout;
  if (std::optional<Layout> layout = find_old_layout(path, entries)) return layout;
  if (std::optional<Layout> layout = find_ge_layout(path, entries)) return layout;
  return find_plain_files(path, entries);
}

/// Keeps the selected ranks and nets.
Status select(Layout& layout, const DumpOptions& options) {
  if (options.net) {
    if (std::find(layout.nets.begin(), layout.nets.end(), *options.net) == layout.nets.end()) {
      return Status(Code::kNotFound, fmt::format("{}: no net '{}' in this dump (it has {})", layout.root, *options.net,
                                                 layout.nets.empty() ? "none" : join(layout.nets)));
    }
    layout.nets = {*options.net};
    for (RankDirectory& rank : layout.ranks) {
      std::erase_if(rank.data, [&](const DataDirectory& data) { return data.net != *options.net; });
    }
  }
  std::vector<std::string> ranks;
  for (const RankDirectory& rank : layout.ranks) ranks.push_back(std::to_string(rank.rank));
  std::erase_if(layout.ranks, [&](const RankDirectory& rank) { return !options.ranks.contains(rank.rank); });
  if (layout.ranks.empty()) {
    return Status(Code::kNotFound, fmt::format("{}: no rank {} in this dump (it has {})", layout.root,
                                               options.ranks.text(), join(ranks)));
  }
  return {};
}

/// The same rank may be found twice: as a directory and through a link to it.
void merge_ranks(Layout& layout) {
  std::sort(layout.ranks.begin(), layout.ranks.end(),
            [](const RankDirectory& a, const RankDirectory& b) { return a.rank < b.rank; });
  for (size_t i = 1; i < layout.ranks.size();) {
    if (layout.ranks[i].rank != layout.ranks[i - 1].rank) {
      ++i;
      continue;
    }
    auto& data = layout.ranks[i - 1].data;
    data.insert(data.end(), layout.ranks[i].data.begin(), layout.ranks[i].data.end());
    layout.ranks.erase(layout.ranks.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

std::optional<int64_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_digits(name.substr(prefix.size()));
}

void add_problem(std::vector<Problem>& problems, Severity severity, std::string path, std::string message) {
  problems.push_back({severity, std::move(path), std::move(message)});
}

std::vector<std::string> find_candidates(const std::string& path) {
  std::vector<std::string> found, level = {path};
  Visited visited;
  size_t listed = 0;
  for (int depth = 0; depth <= kCandidateDepth && !level.empty() && found.size() < kCandidates; ++depth) {
    std::vector<std::string> next;
    for (const std::string& directory : level) {
      if (found.size() >= kCandidates || listed++ >= kCandidateDirectories) return found;
      if (!visited.enter(directory)) continue;
      const Result<Listing> entries = list_directory(directory);
      if (!entries) continue;
      const auto rank = std::find_if(entries->begin(), entries->end(), [](const DirectoryEntry& entry) {
        return entry.directory && number_after(entry.name, "rank_");
      });
      if (depth > 0 && rank != entries->end()) {
        found.push_back(join_path(directory, rank->name));
        continue;
      }
      if (depth > 0 && (find_old_layout(directory, *entries) || find_ge_layout(directory, *entries))) {
        found.push_back(directory);
        continue;
      }
      for (const DirectoryEntry& entry : *entries) {
        if (entry.directory && !entry.link && !entry.name.starts_with('.')) {
          next.push_back(join_path(directory, entry.name));
        }
      }
    }
    level = std::move(next);
  }
  return found;
}

std::string likely_root(const std::string& given) {
  std::string path = given;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return number_after(base_name(path), "rank_") && path.find('/') != std::string::npos ? parent_path(path) : path;
}

Result<Layout> find_layout(const std::string& given, const DumpOptions& options, DirectoryLister& lister) {
  std::string path = given;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const Result<Listing> entries = list_directory(path);
  if (!entries) {
    if (exists(path) && !is_directory(path)) {
      return Status(Code::kNotFound,
                    fmt::format("{}: this is a file; name the directory that holds rank_<n> instead", given));
    }
    return entries.status();
  }
  std::optional<Layout> layout = classify(path, *entries, lister);
  if (!layout) {
    const std::vector<std::string> candidates = find_candidates(path);
    return Status(Code::kNotFound,
                  fmt::format("{}: no dump here: neither rank_<n> nor a known older layout below it. {}. See: msdbg "
                              "doctor {}",
                              given,
                              candidates.empty() ? std::string("No dump within three levels below it either")
                                                 : "Nearest candidates: " + join(candidates),
                              given));
  }
  merge_ranks(*layout);
  std::set<std::string> nets;
  for (const RankDirectory& rank : layout->ranks) {
    for (const DataDirectory& data : rank.data) {
      if (!data.net.empty()) nets.insert(data.net);
    }
  }
  layout->nets.assign(nets.begin(), nets.end());
  if (Status status = select(*layout, options); !status.ok()) return status;
  for (RankDirectory& rank : layout->ranks) {
    std::sort(rank.data.begin(), rank.data.end(), [](const DataDirectory& a, const DataDirectory& b) {
      return std::tie(a.graph, a.constants, a.step, a.net, a.path) <
             std::tie(b.graph, b.constants, b.step, b.net, b.path);
    });
  }
  return std::move(*layout);
}

}  // namespace msdbg::dump
