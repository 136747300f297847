// Which steps of a graph really ran: the global history files, reconciled with the dumped steps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msdbg/session.h"

namespace msdbg::dump {

/// The history of one rank. Immutable after reconcile(); any thread.
class History {
 public:
  /// Reads `ms_global_execution_order_graph_{g}.csv` of the directory; missing files are allowed.
  static History read(const std::string& directory, std::vector<Problem>& problems);

  /// Applies the consistency rule: if a graph was dumped in steps that its history does not list, the whole rank's history is
  /// discarded. One step directly after the last run is allowed. `dumped` holds the numeric directories per graph, including empty
  /// ones.
  void reconcile(const std::map<int, std::set<int64_t>>& dumped, const std::string& directory,
                 std::vector<Problem>& problems);

  /// True if no history is usable and the dumped steps replace it.
  bool empty() const { return runs_.empty(); }
  bool knows(int graph) const { return runs_.count(graph) > 0; }
  /// The last run of `graph` before `step`. Precondition: knows(graph).
  std::optional<int64_t> run_before(int graph, int64_t step) const;
  const std::map<int, std::set<int64_t>>& runs() const { return runs_; }

 private:
  std::map<int, std::set<int64_t>> runs_;
};

/// Full names from `ms_execution_order_graph_{g}.csv` in order, without headings.
/// Error: kNotFound, kIoError.
Result<std::vector<std::string>> read_execution_order(const std::string& path);

/// Number and name of the files `prefix{number}suffix` in a directory, by number.
std::vector<std::pair<int, std::string>> numbered_files(const std::string& directory, std::string_view prefix,
                                                        std::string_view suffix, std::vector<Problem>& problems);

}  // namespace msdbg::dump
