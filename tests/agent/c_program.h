/* For agent_c_test.cpp: a training that is written in C. */
#ifndef MSDBG_TESTS_C_PROGRAM_H
#define MSDBG_TESTS_C_PROGRAM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Steps that ran; 100 more when the agent was silent at the end. */
int train_in_c(int port, char *problem, size_t size);
#ifdef __cplusplus
}
#endif

#endif
