#include "msdbg/agent_c.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>

#include "msdbg/agent.h"

struct msdbg_agent {
  explicit msdbg_agent(msdbg::agent::Options options) : agent(std::move(options)) {}
  msdbg::agent::Agent agent;
  mutable std::mutex mutex;
  std::string problem;  ///< of add_graph, under `mutex`; the agent's own problem comes after it
};

struct msdbg_agent_graph {
  msdbg::agent::GraphDescription graph;
};

namespace {

using msdbg::agent::Control;
using msdbg::agent::NodeDescription;

std::string text(const char* value) { return value == nullptr ? std::string() : value; }

msdbg::DType dtype(const char* name) { return msdbg::dtype_from_name(text(name)); }

msdbg::Shape shape_of(const int64_t* shape, size_t rank) {
  return rank == 0 || shape == nullptr ? msdbg::Shape() : msdbg::Shape(shape, shape + rank);
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

NodeDescription* node_of(msdbg_agent_graph* graph, uint32_t node) {
  return graph == nullptr || node >= graph->graph.nodes.size() ? nullptr : &graph->graph.nodes[node];
}

void copy(const std::string& text, char* to, size_t size) {
  if (to == nullptr || size == 0) return;
  const size_t length = std::min(size - 1, text.size());
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

int as_int(Control control) { return control == Control::kStop ? MSDBG_AGENT_STOP : MSDBG_AGENT_GO; }

}  // namespace

extern "C" {

msdbg_agent* msdbg_agent_from_environment(char* problem, size_t size) {
  return guarded(
      [&]() -> msdbg_agent* {
        auto options = msdbg::agent::options_from_environment();
        if (options.ok()) return new msdbg_agent(std::move(*options));
        copy(options.status().message(), problem, size);
        return nullptr;
      },
      nullptr);
}

msdbg_agent* msdbg_agent_new(const msdbg_agent_options* options) {
  return guarded(
      [&]() -> msdbg_agent* {
        msdbg::agent::Options made;
        if (options == nullptr) return new msdbg_agent(std::move(made));
        made.enabled = options->enabled != 0;
        if (options->host != nullptr) made.host = options->host;
        if (options->port != 0) made.port = options->port;
        made.device_id = options->device_id;
        if (options->backend != nullptr) made.backend = options->backend;
        if (options->heartbeat_period_ms > 0) {
          made.heartbeat_period = std::chrono::milliseconds(options->heartbeat_period_ms);
        }
        if (options->has_rank != 0) made.rank = options->rank;
        return new msdbg_agent(std::move(made));
      },
      nullptr);
}

void msdbg_agent_free(msdbg_agent* agent) { delete agent; }

msdbg_agent_graph* msdbg_agent_graph_new(int id) {
  return guarded(
      [&]() -> msdbg_agent_graph* {
        auto* graph = new msdbg_agent_graph;
        graph->graph.id = id;
        return graph;
      },
      nullptr);
}

void msdbg_agent_graph_free(msdbg_agent_graph* graph) { delete graph; }

void msdbg_agent_graph_parameter(msdbg_agent_graph* graph, const char* name, const char* type, const int64_t* shape,
                                 size_t rank, const void* data, int is_weight) {
  if (graph == nullptr) return;
  guarded([&] {
    graph->graph.parameters.push_back({text(name), dtype(type), shape_of(shape, rank), data, is_weight != 0});
  });
}

void msdbg_agent_graph_constant(msdbg_agent_graph* graph, const char* name, const char* type, const int64_t* shape,
                                size_t rank, const void* data) {
  if (graph == nullptr) return;
  guarded([&] { graph->graph.constants.push_back({text(name), dtype(type), shape_of(shape, rank), data}); });
}

uint32_t msdbg_agent_graph_node(msdbg_agent_graph* graph, const char* full_name, const char* op) {
  if (graph == nullptr) return UINT32_MAX;
  return guarded(
      [&] {
        NodeDescription node;
        node.full_name = text(full_name);
        node.op = text(op);
        graph->graph.nodes.push_back(std::move(node));
        return static_cast<uint32_t>(graph->graph.nodes.size() - 1);
      },
      UINT32_MAX);
}

void msdbg_agent_graph_input(msdbg_agent_graph* graph, uint32_t node, const char* name, uint32_t slot) {
  NodeDescription* at = node_of(graph, node);
  if (at != nullptr) guarded([&] { at->inputs.push_back({text(name), slot}); });
}

void msdbg_agent_graph_output(msdbg_agent_graph* graph, uint32_t node, const char* type, const int64_t* shape,
                              size_t rank) {
  NodeDescription* at = node_of(graph, node);
  if (at != nullptr) guarded([&] { at->outputs.push_back({dtype(type), shape_of(shape, rank)}); });
}

void msdbg_agent_graph_attribute(msdbg_agent_graph* graph, uint32_t node, const char* name, const char* value) {
  NodeDescription* at = node_of(graph, node);
  if (at != nullptr) guarded([&] { at->attributes.push_back({text(name), text(value)}); });
}

void msdbg_agent_graph_frame(msdbg_agent_graph* graph, uint32_t node, const char* file, int line, const char* code) {
  NodeDescription* at = node_of(graph, node);
  if (at != nullptr) guarded([&] { at->stack.push_back({text(file), line, text(code)}); });
}

int msdbg_agent_add_graph(msdbg_agent* agent, msdbg_agent_graph* graph) {
  if (agent == nullptr || graph == nullptr) {
    delete graph;
    return MSDBG_AGENT_ERROR;
  }
  return guarded(
      [&] {
        const std::unique_ptr<msdbg_agent_graph> owned(graph);
        const msdbg::Status status = agent->agent.add_graph(std::move(owned->graph));
        const std::lock_guard lock(agent->mutex);
        agent->problem = status.message();
        return status.ok() ? MSDBG_AGENT_OK : MSDBG_AGENT_ERROR;
      },
      MSDBG_AGENT_ERROR);
}

int msdbg_agent_begin_step(msdbg_agent* agent, int graph) {
  if (agent == nullptr) return MSDBG_AGENT_GO;
  return guarded([&] { return as_int(agent->agent.begin_step(graph)); }, MSDBG_AGENT_GO);
}

void msdbg_agent_publish(msdbg_agent* agent, uint32_t node, uint32_t slot, const void* data, size_t bytes) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] { agent->agent.publish(node, slot, data, bytes); });
}

void msdbg_agent_publish_shaped(msdbg_agent* agent, uint32_t node, uint32_t slot, const void* data, size_t bytes,
                                const int64_t* shape, size_t rank) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] { agent->agent.publish(node, slot, data, bytes, shape_of(shape, rank)); });
}

void msdbg_agent_node_done(msdbg_agent* agent, uint32_t node) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] { agent->agent.node_done(node); });
}

void msdbg_agent_overflowed(msdbg_agent* agent, uint32_t node) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] { agent->agent.overflowed(node); });
}

int msdbg_agent_end_step(msdbg_agent* agent) {
  if (agent == nullptr) return MSDBG_AGENT_GO;
  return guarded([&] { return as_int(agent->agent.end_step()); }, MSDBG_AGENT_GO);
}

void msdbg_agent_finish(msdbg_agent* agent) {
  if (agent != nullptr) guarded([&] { agent->agent.finish(); });
}

int msdbg_agent_attached(const msdbg_agent* agent) { return agent != nullptr && agent->agent.attached() ? 1 : 0; }

size_t msdbg_agent_problem(const msdbg_agent* agent, char* problem, size_t size) {
  return guarded(
      [&]() -> size_t {
        std::string message;
        if (agent != nullptr) {
          const std::lock_guard lock(agent->mutex);
          message = agent->problem;
        }
        if (agent != nullptr && message.empty()) message = agent->agent.problem();
        copy(message, problem, size);
        return message.size();
      },
      0);
}

}  // extern "C"
