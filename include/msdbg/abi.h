/* The plain C interface for LuaJIT's FFI. The text between the two markers below is passed to ffi.cdef: it must not
 * contain a preprocessor line. The Lua side compares version and size when it loads.
 *
 * Counts that Lua prints are double: a uint64_t would arrive as a boxed 64-bit integer. */
#ifndef MSDBG_ABI_H
#define MSDBG_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MSDBG_ABI_VERSION 1

/* cdef-begin */
/* One tensor in memory, row-major. `dtype` is the number of msdbg::DType. The memory belongs to the
 * Lua userdata from which the view was made; the Lua wrapper keeps it alive. */
typedef struct msdbg_view {
  const void *data;
  double count;
  int32_t dtype;
  int32_t rank;
  const int64_t *shape;
} msdbg_view;

/* Every NaN returned is the same quiet one: LuaJIT uses the payloads of others as type tags of its values. */

/* Statistics over finite elements; NaN for an undefined value, -1 for one that was not computed. Units: the tensor's. */
typedef struct msdbg_stats {
  double count, nan_count, pos_inf_count, neg_inf_count, zero_count, pos_count, neg_count;
  double min, max, mean, abs_mean, std, l2_norm, zero_percentage;
  double first_bad, dtype_max_count;
} msdbg_stats;

struct msdbg_abi {
  uint32_t version, size;
  /* Element `index` widened to double. Status: 0, or 1 if the index is out of range. */
  int (*element)(const msdbg_view *view, double index, double *out);
  /* `n` elements from `first` on, widened to double. Status: 0, or 1 if out of range. */
  int (*elements)(const msdbg_view *view, double first, double n, double *out);
  /* All statistics in one pass. Status: 0, or 2 for a dtype without statistics, or 3 if out of memory. */
  int (*statistics)(const msdbg_view *view, msdbg_stats *out);
};
/* cdef-end */

/* The table itself is in the script module and is passed to Lua as light userdata. */
const struct msdbg_abi *msdbg_abi_table(void);

#ifdef __cplusplus
}
#endif
#endif
