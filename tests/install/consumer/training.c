/* A training program in C, built on the installed agent. Without a debugger it just trains. */
#include <msdbg/agent_c.h>
#include <stdio.h>

int main(void) {
  char problem[256];
  msdbg_agent *agent = msdbg_agent_from_environment(problem, sizeof problem);
  if (agent == NULL) return fprintf(stderr, "%s\n", problem), 2;
  float weight[4] = {1, 2, 3, 4}, y[2] = {0, 0};
  const int64_t weight_shape[] = {2, 2}, y_shape[] = {2};
  msdbg_agent_graph *graph = msdbg_agent_graph_new(1);
  msdbg_agent_graph_parameter(graph, "fc1.weight", "float32", weight_shape, 2, weight, 1);
  const uint32_t fc1 = msdbg_agent_graph_node(graph, "Default/MatMul-op1", "MatMul");
  msdbg_agent_graph_input(graph, fc1, "fc1.weight", 0);
  msdbg_agent_graph_output(graph, fc1, "float32", y_shape, 1);
  if (msdbg_agent_add_graph(agent, graph) != MSDBG_AGENT_OK) return 3;
  int steps = 0;
  while (steps < 3 && msdbg_agent_begin_step(agent, 0) == MSDBG_AGENT_GO) {
    for (int i = 0; i < 2; ++i) y[i] = weight[2 * i] + weight[2 * i + 1];
    msdbg_agent_publish(agent, fc1, 0, y, sizeof y);
    msdbg_agent_node_done(agent, fc1);
    ++steps;
    if (msdbg_agent_end_step(agent) == MSDBG_AGENT_STOP) break;
  }
  msdbg_agent_free(agent);
  printf("trained %d steps, y = %g %g\n", steps, y[0], y[1]);
  return 0;
}
