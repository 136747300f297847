/* The training side for programs that are not C++: the same as msdbg/agent.h in plain C.
 *
 * No exception leaves a function. Text is copied; tensors are not: msdbg/agent.h says how long they must stay valid.
 * Call everything on the training thread, except msdbg_agent_finish(), which may be called on any thread.
 *
 *   char problem[256];
 *   msdbg_agent *agent = msdbg_agent_from_environment(problem, sizeof problem);
 *   msdbg_agent_graph *graph = msdbg_agent_graph_new(1);
 *   int64_t shape[] = {8, 16};
 *   msdbg_agent_graph_parameter(graph, "fc1.weight", "float32", shape, 2, weight, 1);
 *   uint32_t fc1 = msdbg_agent_graph_node(graph, "Default/net-Net/MatMul-op1", "MatMul");
 *   msdbg_agent_graph_input(graph, fc1, "fc1.weight", 0);
 *   msdbg_agent_graph_output(graph, fc1, "float32", shape, 2);
 *   msdbg_agent_add_graph(agent, graph);
 *   while (training && msdbg_agent_begin_step(agent, 0) == MSDBG_AGENT_GO) {
 *     ... msdbg_agent_publish(agent, fc1, 0, y, sizeof y); msdbg_agent_node_done(agent, fc1);
 *     if (msdbg_agent_end_step(agent) == MSDBG_AGENT_STOP) break;
 *   }
 *   msdbg_agent_free(agent);
 */
#ifndef MSDBG_AGENT_C_H
#define MSDBG_AGENT_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct msdbg_agent msdbg_agent;
typedef struct msdbg_agent_graph msdbg_agent_graph;

enum { MSDBG_AGENT_GO = 0, MSDBG_AGENT_STOP = 1 };
enum { MSDBG_AGENT_OK = 0, MSDBG_AGENT_ERROR = 1 };

typedef struct msdbg_agent_options {
  int enabled;
  const char *host;         /* NULL: 127.0.0.1 */
  int port;                 /* 0: 50051 */
  int device_id;
  const char *backend;      /* NULL: "GPU"; "Ascend" */
  int heartbeat_period_ms;  /* 0: 30000 */
  int has_rank;             /* 0: not known */
  int rank;                 /* of this process among those of its training */
} msdbg_agent_options;

/* NULL if a variable has an invalid value; `problem` (may be NULL) receives its name and what is accepted. */
msdbg_agent *msdbg_agent_from_environment(char *problem, size_t size);
msdbg_agent *msdbg_agent_new(const msdbg_agent_options *options);
/* Ends the conversation first. NULL is allowed. */
void msdbg_agent_free(msdbg_agent *agent);

/* A graph description under construction. Operators are added in execution order; `dtype` is a name such as "float32". */
msdbg_agent_graph *msdbg_agent_graph_new(int id);
void msdbg_agent_graph_free(msdbg_agent_graph *graph);
void msdbg_agent_graph_parameter(msdbg_agent_graph *graph, const char *name, const char *dtype, const int64_t *shape,
                                 size_t rank, const void *data, int is_weight);
void msdbg_agent_graph_constant(msdbg_agent_graph *graph, const char *name, const char *dtype, const int64_t *shape,
                                size_t rank, const void *data);
/* Returns the index of the new operator, for calls that take one. */
uint32_t msdbg_agent_graph_node(msdbg_agent_graph *graph, const char *full_name, const char *op);
void msdbg_agent_graph_input(msdbg_agent_graph *graph, uint32_t node, const char *name, uint32_t slot);
void msdbg_agent_graph_output(msdbg_agent_graph *graph, uint32_t node, const char *dtype, const int64_t *shape,
                              size_t rank);
void msdbg_agent_graph_attribute(msdbg_agent_graph *graph, uint32_t node, const char *name, const char *value);
/* Adds one line of the program, innermost first. */
void msdbg_agent_graph_frame(msdbg_agent_graph *graph, uint32_t node, const char *file, int line, const char *code);
/* Always takes ownership of the description. MSDBG_AGENT_ERROR: see msdbg_agent_problem(). */
int msdbg_agent_add_graph(msdbg_agent *agent, msdbg_agent_graph *graph);

int msdbg_agent_begin_step(msdbg_agent *agent, int graph);
void msdbg_agent_publish(msdbg_agent *agent, uint32_t node, uint32_t slot, const void *data, size_t bytes);
void msdbg_agent_publish_shaped(msdbg_agent *agent, uint32_t node, uint32_t slot, const void *data, size_t bytes,
                                const int64_t *shape, size_t rank);
/* Reports that the device flagged an overflow while the operator ran (backend "Ascend" only). Call it before
 * msdbg_agent_end_step(). */
void msdbg_agent_overflowed(msdbg_agent *agent, uint32_t node);
void msdbg_agent_node_done(msdbg_agent *agent, uint32_t node);
int msdbg_agent_end_step(msdbg_agent *agent);
void msdbg_agent_finish(msdbg_agent *agent);

int msdbg_agent_attached(const msdbg_agent *agent);
/* Writes the current problem to `problem`, cut to `size` with its final NUL; "" if there is none or the debugger
 * ended the training. Returns the length of the whole text. Any thread. */
size_t msdbg_agent_problem(const msdbg_agent *agent, char *problem, size_t size);

#ifdef __cplusplus
}
#endif

#endif
