// Sources of why() besides the session: the settings of the dump, the history of its graphs, and names that no longer exist.
//
// The session's owner thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "msdbg/follow.h"

namespace msdbg {

/// The fields of data_dump.json that decide what is written. Missing fields stay empty.
struct DumpSettings {
  std::string path;  ///< of the file; "" without one
  std::optional<int64_t> dump_mode, input_output, op_debug_mode;
  std::string iteration, saved_data;
  std::vector<std::string> kernels;

  /// nullopt without the file, or if the text is malformed.
  std::optional<bool> wants_step(int64_t step) const;
  /// True if an entry of `kernels` matches the node.
  bool names(const Graph& graph, const Node& node) const;
  /// An entry that differs from the node's name only in the number after `-op`; "" without one.
  std::string other_number(const Node& node) const;
};

/// `rank_N` of a dump; "" if unknown.
std::string rank_directory(const Session& session, const Graph& graph);
DumpSettings read_settings(const std::string& rank_directory);

/// Steps in which a graph ran, from its history file. `path` is empty without one.
struct GraphHistory {
  std::string path;
  std::vector<int64_t> steps;  ///< ascending
};
GraphHistory read_history(const std::string& rank_directory, int graph);

/// Position of a node in ms_execution_order_graph_N.csv, from 1; nullopt if the file does not list it or does not exist.
std::optional<size_t> listed_at(const std::string& rank_directory, const Graph& graph, const Node& node, std::string* path);

/// A name that is in no graph: fused, optimised away, or never there.
WhyAnswer explain_absent_name(const Session& session, std::string_view name, const WhyOptions& options);

/// Adds what other ranks say: whether they have the tensor, and what a collective took from them. Reads the inputs of that collective.
void explain_ranks(Session& session, const TensorId& id, WhyAnswer& answer);

}  // namespace msdbg
