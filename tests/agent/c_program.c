/* A training of two steps in plain C: the header must be usable without a C++ compiler. */
#include "agent/c_program.h"

#include <string.h>

#include "msdbg/agent_c.h"

int train_in_c(int port, char *problem, size_t size) {
  float w[4] = {1, 2, 3, 4}, y[4];
  const float scale = 2;
  const int64_t shape[] = {2, 2};
  msdbg_agent_options options;
  msdbg_agent *agent;
  msdbg_agent_graph *graph;
  uint32_t mul;
  int steps = 0, i;

  memset(&options, 0, sizeof options);
  options.enabled = 1;
  options.port = port;
  agent = msdbg_agent_new(&options);
  graph = msdbg_agent_graph_new(3);
  msdbg_agent_graph_parameter(graph, "w", "float32", shape, 2, w, 1);
  msdbg_agent_graph_constant(graph, "Default--data-0", "float32", NULL, 0, &scale);
  mul = msdbg_agent_graph_node(graph, "Default/net-Net/Mul-op1", "Mul");
  msdbg_agent_graph_input(graph, mul, "w", 0);
  msdbg_agent_graph_input(graph, mul, "Default--data-0", 0);
  msdbg_agent_graph_output(graph, mul, "float32", shape, 2);
  msdbg_agent_graph_attribute(graph, mul, "axis", "0");
  msdbg_agent_graph_frame(graph, mul, "net.c", 7, "y = w * scale");
  if (msdbg_agent_add_graph(agent, graph) != MSDBG_AGENT_OK) steps = -1;
  while (steps >= 0 && steps < 2 && msdbg_agent_begin_step(agent, 0) == MSDBG_AGENT_GO) {
    for (i = 0; i < 4; ++i) y[i] = w[i] * scale;
    msdbg_agent_publish(agent, mul, 0, y, sizeof y);
    msdbg_agent_node_done(agent, mul);
    ++steps;
    if (msdbg_agent_end_step(agent) == MSDBG_AGENT_STOP) break;
  }
  if (!msdbg_agent_attached(agent)) steps += 100;
  msdbg_agent_finish(agent);
  msdbg_agent_problem(agent, problem, size);
  msdbg_agent_free(agent);
  return steps;
}
