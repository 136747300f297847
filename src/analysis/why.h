// What why() finds out besides the session: the settings of the dump, the history of its graphs, names that are gone.
//
// The session's owner thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "msdbg/follow.h"

namespace msdbg {

/// The words of data_dump.json that decide what is written. Absent words stay empty.
struct DumpSettings {
  std::string path;  ///< of the file; "" when there is none
  std::optional<int64_t> dump_mode, input_output, op_debug_mode;
  std::string iteration, saved_data;
  std::vector<std::string> kernels;

  /// Unknown without the file, or when the text is malformed.
  std::optional<bool> wants_step(int64_t step) const;
  /// True when an entry of `kernels` takes the node.
  bool names(const Graph& graph, const Node& node) const;
  /// An entry that is the node's name but for the number after `-op`; "" without.
  std::string other_number(const Node& node) const;
};

/// `rank_N` of a dump, "" when it cannot be told.
std::string rank_directory(const Session& session, const Graph& graph);
DumpSettings read_settings(const std::string& rank_directory);

/// Steps in which a graph ran, by its history file. `path` is empty without one.
struct GraphHistory {
  std::string path;
  std::vector<int64_t> steps;  ///< ascending
};
GraphHistory read_history(const std::string& rank_directory, int graph);

/// Place of a node in ms_execution_order_graph_N.csv, from 1; nullopt: the file does not list it, or there is none.
std::optional<size_t> listed_at(const std::string& rank_directory, const Graph& graph, const Node& node, std::string* path);

/// A name that no graph has: fused, optimised away, or never there.
WhyAnswer explain_absent_name(const Session& session, std::string_view name, const WhyOptions& options);

}  // namespace msdbg
