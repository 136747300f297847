/* The training side for programs that are not C++: the same as msdbg/agent.h in plain C.
 *
 * No exception leaves a function. Text is copied; tensors are not: msdbg/agent.h says how long they must stay valid. Wrong
 * arguments (NULL, a number out of range, a negative size, an unknown type) change nothing; msdbg_agent_problem() names them.
 *
 * Threads: any thread may call, but one call at a time: each begins after the one before it returned. Exceptions are
 * msdbg_agent_finish(), msdbg_agent_attached() and msdbg_agent_problem(), which any thread may call at any time. finish() ends a
 * hold, so a helper thread that is woken by a signal can call it; a signal handler itself cannot.
 * fork(): the child must not call anything, msdbg_agent_free() included; it owns a copy of a conversation that is not its own.
 * Python: load the library with ctypes.CDLL. It releases the interpreter's lock during a call: other threads run while the training
 * is held. A callback made by CFUNCTYPE takes the lock again.
 * Libraries: libmsdbg-agent.so exports the names msdbg_agent_* alone, so it can be loaded beside a framework with its own gRPC.
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
/* Attribute "updates" names the inputs that an operator changes in place, as in "0-3,5". If it has as many outputs, output k is what
 * became of the k-th of them. */
void msdbg_agent_graph_attribute(msdbg_agent_graph *graph, uint32_t node, const char *name, const char *value);
/* Adds one line of the program, innermost first. */
void msdbg_agent_graph_frame(msdbg_agent_graph *graph, uint32_t node, const char *file, int line, const char *code);
/* Always takes ownership of the description. MSDBG_AGENT_ERROR: see msdbg_agent_problem(). */
int msdbg_agent_add_graph(msdbg_agent *agent, msdbg_agent_graph *graph);

/* Before the first msdbg_agent_begin_step(). MSDBG_AGENT_ERROR for another name, a wrong value, or when it is too late.
 *   "program"        the name that the debugger shows for this training, such as "PyTorch"; otherwise it shows MindSpore
 *   "version"        the version of that program, such as "2.15.0"
 *   "profile"        the release of MindSpore whose conversation is held: "2.2" and its patches, such as "2.2.14"
 *   "retry_unit_ms"  1 to 60000: a failed wait for the debugger is repeated after 1, 2, ... 5 units of this many milliseconds */
int msdbg_agent_set_option(msdbg_agent *agent, const char *name, const char *value);

/* The description of graph `graph` (its number in msdbg_agent_begin_step()) again: more operators, other shapes. Its id stays,
 * whatever the description says; node numbers are those of the new description from now on. Values that were published in this
 * step stay, by full name and slot, and so do parameters' previous values. Allowed between steps and inside one. The debugger
 * gets it where the training could be held next, and passes over that suspension; its watchpoints then cover the new operators
 * already at the end of this step. Takes the description over, always. */
int msdbg_agent_replace_graph(msdbg_agent *agent, int graph, msdbg_agent_graph *description);

/* Where parameter, data input or constant `name` of graph `graph` is now: it moved, or a new batch came. `dtype` NULL: as
 * described. `data` NULL: it has no value. The memory must stay valid until it is set again or msdbg_agent_finish() returned. */
int msdbg_agent_set_parameter(msdbg_agent *agent, int graph, const char *name, const char *dtype, const int64_t *shape, size_t rank,
                              const void *data);

/* A description from the files that MindSpore writes beside its dump: graph number `graph` (as in ms_output_trace_code_graph_<graph>.pb)
 * of `rank_directory` (".../rank_0"), in the order of its execution_order. Parameters have no value until
 * msdbg_agent_set_parameter() gives them one. Operators can be added. NULL: `problem` (may be NULL) says why. */
msdbg_agent_graph *msdbg_agent_graph_from_dump(int id, const char *rank_directory, int graph, char *problem, size_t size);
/* Adds another graph of the same network, which control flow on tensors has split. Returns the number of its first operator, which
 * comes behind those that are there, or -1: `problem` (may be NULL) says why, and nothing was added. */
int msdbg_agent_graph_add_dump(msdbg_agent_graph *description, const char *rank_directory, int graph, char *problem, size_t size);
/* Inside a step whose graph came from msdbg_agent_graph_from_dump(): publishes what the dump of one iteration
 * (".../rank_0/Net/0/1000000007") holds for the operators of the graph (of several: those of graph 0), and reports each operator
 * done, in execution order. Files are read when their elements are needed: remove them only when msdbg_agent_end_step() has returned.
 * Returns how many outputs were published (those that nobody looks at are not), or -1: msdbg_agent_problem() says why. */
int msdbg_agent_publish_dump(msdbg_agent *agent, const char *iteration_directory);

int msdbg_agent_begin_step(msdbg_agent *agent, int graph);

/* What of the step that has begun is looked at. Ask after msdbg_agent_begin_step(), and again after each
 * msdbg_agent_node_done(), which may have held the training. */
enum {
  MSDBG_AGENT_WANTS_NOTHING = 0, /* no operator is watched or stepped to: trace nothing */
  MSDBG_AGENT_WANTS_SOME = 1,    /* ask msdbg_agent_wants_node() for each */
  MSDBG_AGENT_WANTS_ALL = 2      /* a watch on everything, stepping by operator without a name, or backend "Ascend" in a step at
                                    whose end somebody may look */
};
int msdbg_agent_wants(const msdbg_agent *agent);
/* 1 if the outputs of operator `node` are looked at: by a watchpoint, by a stop behind it, or as inputs of such an operator. */
int msdbg_agent_wants_node(msdbg_agent *agent, uint32_t node);
/* 1 if that is so for any of the `count` operators `nodes`. */
int msdbg_agent_wants_any(msdbg_agent *agent, const uint32_t *nodes, size_t count);

void msdbg_agent_publish(msdbg_agent *agent, uint32_t node, uint32_t slot, const void *data, size_t bytes);
void msdbg_agent_publish_shaped(msdbg_agent *agent, uint32_t node, uint32_t slot, const void *data, size_t bytes,
                                const int64_t *shape, size_t rank);
/* A value that does not stay: copied if it is looked at (1), else forgotten (0), as is a wrong one. The memory is free when the
 * call returns. `dtype` NULL: as described. `strides` in elements, one for each dimension; NULL: contiguous, row by row. `data`
 * is the element with index 0 in each dimension. */
int msdbg_agent_publish_copy(msdbg_agent *agent, uint32_t node, uint32_t slot, const char *dtype, const void *data,
                             const int64_t *shape, const int64_t *strides, size_t rank);

/* A value that stays until msdbg_agent_end_step() has returned, with any strides and type, as in msdbg_agent_publish_copy(). It is
 * gathered when its elements are looked at. */
void msdbg_agent_publish_strided(msdbg_agent *agent, uint32_t node, uint32_t slot, const char *dtype, const void *data,
                                 const int64_t *shape, const int64_t *strides, size_t rank);

/* A value as in msdbg_agent_publish_strided() whose elements are all among those of output `of_slot` of operator `of`, which was
 * published before in this step and has not changed since. What is known to be finite is not read again. `strides` NULL: contiguous. */
void msdbg_agent_publish_view(msdbg_agent *agent, uint32_t node, uint32_t slot, uint32_t of, uint32_t of_slot, const char *dtype,
                              const void *data, const int64_t *shape, const int64_t *strides, size_t rank);

/* Writes the elements of output `slot` of operator `node`, contiguous, row by row: `bytes` bytes to `into`. 0: done; any other
 * value: the elements cannot be had, and the debugger is told that there is no such tensor. */
typedef int (*msdbg_agent_fetch)(void *user, uint32_t node, uint32_t slot, void *into, size_t bytes);
/* What is known of a parameter that is elsewhere: MSDBG_AGENT_STATE_... */
typedef int (*msdbg_agent_state)(void *user);
/* A value that is elsewhere, such as in a GPU. `state` is what is known about it; the conditions tensor_overflow, nan and inf are
 * decided by it alone, unless it is 0. `fetch` is called when elements are needed, perhaps several times for a value, in
 * the thread of the call that needs them: msdbg_agent_node_done(), msdbg_agent_end_step(). It must not call the agent. The value
 * must stay until msdbg_agent_end_step() returned. `dtype` NULL: as described. */
enum {
  MSDBG_AGENT_STATE_UNKNOWN = 0,
  MSDBG_AGENT_STATE_FINITE = 1,
  MSDBG_AGENT_STATE_NAN = 2, /* there is a NaN; 2 | 4: both */
  MSDBG_AGENT_STATE_INF = 4
};
void msdbg_agent_publish_remote(msdbg_agent *agent, uint32_t node, uint32_t slot, const char *dtype, const int64_t *shape,
                                size_t rank, int state, msdbg_agent_fetch fetch, void *user);
/* As msdbg_agent_set_parameter(), for a parameter that is elsewhere. `state` (may be NULL) is called when a condition may be decided by
 * it, `fetch` (with node and slot 0) when elements are needed: in the thread of msdbg_agent_begin_step(), msdbg_agent_node_done() or
 * msdbg_agent_end_step(), and again when the program has run on. They must not call the agent, and stay valid until the parameter is set
 * again or msdbg_agent_finish() returned. A parameter that cannot be fetched has no value for the moment. */
int msdbg_agent_set_parameter_remote(msdbg_agent *agent, int graph, const char *name, const char *dtype, const int64_t *shape,
                                     size_t rank, msdbg_agent_state state, msdbg_agent_fetch fetch, void *user);

/* Reports that the device flagged an overflow while the operator ran (backend "Ascend" only). Call it before
 * msdbg_agent_end_step(). */
void msdbg_agent_overflowed(msdbg_agent *agent, uint32_t node);
/* All operators of the step have run: msdbg_agent_node_done() comes late from here on, and parameters have the values of the end of
 * the step. If the graph was described again, the debugger gets it now. msdbg_agent_publish_dump() implies the call. */
void msdbg_agent_step_computed(msdbg_agent *agent);
/* These operators do not run in the step that has begun: what they change in place keeps its value, so the debugger can show what
 * others have read of it. Without the call, it takes operators of the graph for run. A second call in a step replaces the first. */
void msdbg_agent_skipped(msdbg_agent *agent, const uint32_t *nodes, size_t count);
/* The step that has begun ends in its midst: `why`, such as the text of an exception. msdbg_agent_end_step() holds the training, whatever
 * the debugger has asked for, unless it has detached. */
void msdbg_agent_cut_short(msdbg_agent *agent, const char *why);
/* Whether the step that has begun ends without a word to the debugger, which looks at nothing that the step leaves. Then only the outputs
 * that msdbg_agent_wants_node() tells have to be published: what else there is can wait for a step that ends otherwise. A step that is
 * cut short holds all the same. Ask once, after msdbg_agent_begin_step(). */
int msdbg_agent_passes(msdbg_agent *agent);
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
