#include "session/dump/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "msdbg/file.h"
#include "session/dump/directory.h"
#include "session/dump/file_name.h"
#include "session/dump/layout.h"

namespace msdbg::dump {
namespace {

constexpr std::string_view kGlobalPrefix = "ms_global_execution_order_graph_";
constexpr std::string_view kOrderHeading = "NodeExecutionOrder-FullNameWithScope";

std::optional<int64_t> leading_number(std::string_view line) {
  line = trim(line);
  const size_t end = line.find_first_not_of("0123456789");
  return parse_digits(line.substr(0, end));
}

}  // namespace

std::vector<std::pair<int, std::string>> numbered_files(const std::string& directory, std::string_view prefix,
                                                        std::string_view suffix, std::vector<Problem>& problems) {
  std::vector<std::pair<int, std::string>> files;
  const Result<Listing> entries = list_directory(directory);
  if (!entries) {
    if (entries.status().code() != Code::kNotFound) {
      add_problem(problems, Severity::kError, directory, "cannot be listed: " + entries.status().message());
    }
    return files;
  }
  for (const DirectoryEntry& entry : *entries) {
    std::string_view name = entry.name;
    if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() < prefix.size() + suffix.size()) continue;
    name.remove_prefix(prefix.size());
    name.remove_suffix(suffix.size());
    const std::optional<int64_t> number = parse_digits(name);
    if (number && *number <= std::numeric_limits<int>::max()) {
      files.emplace_back(static_cast<int>(*number), join_path(directory, entry.name));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

History History::read(const std::string& directory, std::vector<Problem>& problems) {
  History history;
  for (const auto& [graph, path] : numbered_files(directory, kGlobalPrefix, ".csv", problems)) {
    const Result<std::vector<std::string>> lines = read_lines(path);
    if (!lines) {
      add_problem(problems, Severity::kError, path, without_path(lines.status(), path).message());
      continue;
    }
    std::set<int64_t>& runs = history.runs_[graph];
    size_t odd = 0;
    for (const std::string& line : *lines) {
      if (const std::optional<int64_t> step = leading_number(line)) {
        runs.insert(*step);
      } else {
        ++odd;
      }
    }
    if (odd > 0) add_problem(problems, Severity::kWarning, path, fmt::format("{} lines hold no step number", odd));
  }
  return history;
}

void History::reconcile(const std::map<int, std::set<int64_t>>& dumped, const std::string& directory,
                        std::vector<Problem>& problems) {
  for (const auto& [graph, steps] : dumped) {
    const auto runs = runs_.find(graph);
    if (runs == runs_.end()) continue;
    std::vector<int64_t> foreign;
    std::set_difference(steps.begin(), steps.end(), runs->second.begin(), runs->second.end(),
                        std::back_inserter(foreign));
    if (foreign.empty()) continue;
    const bool follows_last_run =
        foreign.size() == 1 && foreign[0] == *steps.rbegin() && runs->second.count(foreign[0] - 1) > 0;
    if (follows_last_run) continue;
    add_problem(
        problems, Severity::kWarning, directory,
        fmt::format("graph {} was dumped in {} steps (the first is {}) that its execution history does not list: "
                    "the history is not used, the step before is the last one dumped",
                    graph, foreign.size(), foreign[0]));
    runs_.clear();
    return;
  }
}

std::optional<int64_t> History::run_before(int graph, int64_t step) const {
  const std::set<int64_t>& runs = runs_.at(graph);
  const auto at = runs.lower_bound(step);
  if (at == runs.begin()) return std::nullopt;
  return *std::prev(at);
}

Result<std::vector<std::string>> read_execution_order(const std::string& path) {
  Result<std::vector<std::string>> lines = read_lines(path);
  if (!lines) return lines.status();
  std::erase_if(*lines, [](const std::string& line) { return line.empty() || line == kOrderHeading; });
  return lines;
}

}  // namespace msdbg::dump
