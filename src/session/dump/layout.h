// Detects MindSpore's directory layout of a path, and finds its ranks, graphs and steps. Only lists directories; opens no file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "msdbg/dump.h"
#include "msdbg/session.h"
#include "session/dump/directory.h"

namespace msdbg::dump {

/// A directory that holds tensor files of one graph and step, or the constants of one graph.
struct DataDirectory {
  std::string path, net;
  int graph = 0;
  int64_t step = 0;
  bool constants = false;
};

struct RankDirectory {
  int rank = 0;
  std::string path;  ///< contains `graphs`, `execution_order`, `.dump_metadata`, `debug_files` if they exist
  std::vector<DataDirectory> data;
};

struct Layout {
  std::string kind;  ///< "R", "V-sync", "V-cpu", "V-async", "G", "files"
  std::string root;
  std::vector<RankDirectory> ranks;  ///< by rank
  std::vector<std::string> nets;
  std::vector<Problem> problems;

  /// In the oldest layouts one directory contains the files of all graphs.
  bool graphs_share_directories() const { return kind == "V-sync" || kind == "V-cpu"; }
};

/// Error: kNotFound "no dump here" with the nearest dumps below the path; kIoError.
Result<Layout> find_layout(const std::string& path, const DumpOptions& options, DirectoryLister& lister);

/// The root of the dump at `path`, as far as its name tells.
std::string likely_root(const std::string& path);

/// Dumps below `path`: directories named rank_N, or with an older layout. Depth and number are limited.
std::vector<std::string> find_candidates(const std::string& path);

// ---- one function per family; nullopt: another layout ------------------------------------------------------------------

std::optional<Layout> find_rank_layout(const std::string& path, const Listing& entries, DirectoryLister& lister);
std::optional<Layout> find_old_layout(const std::string& path, const Listing& entries);
std::optional<Layout> find_ge_layout(const std::string& path, const Listing& entries);
std::optional<Layout> find_plain_files(const std::string& path, const Listing& entries);

/// 12 of "iteration_12" for the prefix "iteration_".
std::optional<int64_t> number_after(std::string_view name, std::string_view prefix);
void add_problem(std::vector<Problem>& problems, Severity severity, std::string path, std::string message);

}  // namespace msdbg::dump
