// Which steps of a graph really ran: the global history files, reconciled with the steps that were dumped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "msdbg/session.h"

namespace msdbg::dump {

/// Of one rank. Immutable after reconcile(); any thread.
class History {
 public:
  /// Reads `ms_global_execution_order_graph_{g}.csv` of the directory; missing files are not a problem.
  static History read(const std::string& directory, std::vector<Problem>& problems);

  /// Applies the consistency rule: a graph that was dumped in steps which its history does not list discredits the
  /// whole rank's history, except for one step directly after the last run. `dumped` holds the numeric directories per
  /// graph, empty ones included.
  void reconcile(const std::map<int, std::set<int64_t>>& dumped, const std::string& directory,
                 std::vector<Problem>& problems);

  /// True when there is no usable history at all and the dumped steps must serve.
  bool empty() const { return runs_.empty(); }
  bool knows(int graph) const { return runs_.count(graph) > 0; }
  /// The last run of `graph` before `step`. Precondition: knows(graph).
  std::optional<int64_t> run_before(int graph, int64_t step) const;
  const std::map<int, std::set<int64_t>>& runs() const { return runs_; }

 private:
  std::map<int, std::set<int64_t>> runs_;
};

/// Full names of `ms_execution_order_graph_{g}.csv` in order, headings left out.
/// Error: kNotFound, kIoError.
Result<std::vector<std::string>> read_execution_order(const std::string& path);

/// Name and number of the files `prefix{number}suffix` in a directory, by number.
std::vector<std::pair<int, std::string>> numbered_files(const std::string& directory, std::string_view prefix,
                                                        std::string_view suffix, std::vector<Problem>& problems);

}  // namespace msdbg::dump
