// What the two halves of the C interface share: handles, conversions, and the catch around every call.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>

#include "msdbg/agent.h"
#include "msdbg/agent_c.h"

struct msdbg_agent {
  explicit msdbg_agent(msdbg::agent::Options options) : agent(std::move(options)) {}
  msdbg::agent::Agent agent;
  mutable std::mutex mutex;
  std::string problem;  ///< of the last call that reports one, under `mutex`; the agent's own comes after it
};

struct msdbg_agent_graph {
  msdbg::agent::GraphDescription graph;
  std::string problem;  ///< the first wrong argument
};

namespace msdbg::agent::c {

/// No framework has more dimensions; a larger number is a mistake, perhaps a negative one.
inline constexpr size_t kMaxRank = 64;

inline std::string text(const char* value) { return value == nullptr ? std::string() : value; }

inline DType dtype(const char* name) { return dtype_from_name(text(name)); }

/// nullopt: a pointer without dimensions, or a rank that no tensor has.
inline std::optional<Shape> shape_of(const int64_t* shape, size_t rank) {
  if (rank > kMaxRank || (rank > 0 && shape == nullptr)) return std::nullopt;
  return rank == 0 ? Shape() : Shape(shape, shape + rank);
}
inline Status wrong_shape(size_t rank) {
  return {Code::kInvalidArgument, rank > kMaxRank ? "a shape of " + std::to_string(rank) + " dimensions; at most 64 are possible"
                                                  : "a shape without its sizes: the pointer is NULL"};
}

/// Calls `what` and catches exceptions (out of memory).
template <typename What>
auto guarded(What what, decltype(what()) otherwise) noexcept -> decltype(what()) {
  try {
    return what();
  } catch (const std::exception&) {
    return otherwise;
  }
}
template <typename What>
void guarded(What what) noexcept {
  try {
    what();
  } catch (const std::exception&) {
    return;  // out of memory: the tensor or line is missing, but the training continues
  }
}

/// Null for an operator that does not exist.
inline NodeDescription* node_of(msdbg_agent_graph* graph, uint32_t node) {
  return graph == nullptr || node >= graph->graph.nodes.size() ? nullptr : &graph->graph.nodes[node];
}
/// The shape, or an empty one and a problem that adding the graph reports.
inline Shape described_shape(msdbg_agent_graph* graph, const char* of, const int64_t* shape, size_t rank) {
  std::optional<Shape> known = shape_of(shape, rank);
  if (!known && graph->problem.empty()) graph->problem = text(of) + ": " + wrong_shape(rank).message();
  return known ? std::move(*known) : Shape();
}

inline void copy(const std::string& text, char* to, size_t size) {
  if (to == nullptr || size == 0) return;
  const size_t length = std::min(size - 1, text.size());
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

inline int as_int(Control control) { return control == Control::kStop ? MSDBG_AGENT_STOP : MSDBG_AGENT_GO; }

/// Keeps the reason for msdbg_agent_problem().
inline int outcome(msdbg_agent* agent, const Status& status) {
  const std::lock_guard lock(agent->mutex);
  agent->problem = status.message();
  return status.ok() ? MSDBG_AGENT_OK : MSDBG_AGENT_ERROR;
}

/// No name: as described. An unknown one is an error that the call names.
inline std::optional<DType> optional_dtype(const char* name) {
  return name == nullptr ? std::nullopt : std::optional(dtype(name));
}

}  // namespace msdbg::agent::c
