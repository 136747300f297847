#include "agent/c_handles.h"

using namespace msdbg::agent;
using namespace msdbg::agent::c;

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
    graph->graph.parameters.push_back({text(name), dtype(type), described_shape(graph, name, shape, rank), data, is_weight != 0});
  });
}

void msdbg_agent_graph_constant(msdbg_agent_graph* graph, const char* name, const char* type, const int64_t* shape,
                                size_t rank, const void* data) {
  if (graph == nullptr) return;
  guarded([&] { graph->graph.constants.push_back({text(name), dtype(type), described_shape(graph, name, shape, rank), data}); });
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
  if (at != nullptr) guarded([&] { at->outputs.push_back({dtype(type), described_shape(graph, at->full_name.c_str(), shape, rank)}); });
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
        if (!owned->problem.empty()) return outcome(agent, {msdbg::Code::kInvalidArgument, owned->problem});
        return outcome(agent, agent->agent.add_graph(std::move(owned->graph)));
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
  guarded([&] {
    if (const auto known = shape_of(shape, rank)) agent->agent.publish(node, slot, data, bytes, *known);
    else outcome(agent, wrong_shape(rank));
  });
}

void msdbg_agent_node_done(msdbg_agent* agent, uint32_t node) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] { agent->agent.node_done(node); });
}

void msdbg_agent_step_computed(msdbg_agent* agent) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] { agent->agent.step_computed(); });
}

void msdbg_agent_skipped(msdbg_agent* agent, const uint32_t* nodes, size_t count) {
  if (agent == nullptr || (nodes == nullptr && count > 0) || !agent->agent.attached()) return;
  guarded([&] { agent->agent.skipped({nodes, count}); });
}

void msdbg_agent_cut_short(msdbg_agent* agent, const char* why) {
  if (agent == nullptr || why == nullptr || !agent->agent.attached()) return;
  guarded([&] { agent->agent.cut_short(why); });
}

void msdbg_agent_overflowed(msdbg_agent* agent, uint32_t node) {
  if (agent == nullptr || !agent->agent.attached()) return;
  guarded([&] { agent->agent.overflowed(node); });
}

int msdbg_agent_passes(msdbg_agent* agent) {
  if (agent == nullptr) return 0;
  return guarded([&] { return agent->agent.passes() ? 1 : 0; }, 0);
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
