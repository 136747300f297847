---@meta
-- Stubs of comparisons: two sessions, two tensors, two losses. docs/diff.md and docs/series.md are the pages for people.

---@class msdbg
local msdbg = {}

---Where two runs part: nodes are matched by name, then by structure, and every tensor of `a` is compared with its counterpart of `b`, the
---yardstick. Left out, `b` is `a`: two steps, ranks or graphs of it.
---@param a msdbg.Session
---@param b? msdbg.Session
---@param options? { steps?: msdbg.Numbers, ranks?: msdbg.Numbers, steps_a?: msdbg.Numbers, steps_b?: msdbg.Numbers, ranks_a?: msdbg.Numbers, ranks_b?: msdbg.Numbers, graph_a?: integer, graph_b?: integer, rtol?: number, atol?: number, on?: msdbg.Selector, map?: string|table<string, string>, threads?: integer }
---@return msdbg.Diff
function msdbg.diff(a, b, options) end

---What msdbg.diff found. Printed, it is the table of `msdbg diff`.
---@class msdbg.Diff
---@field verdict "equal"|"different"|"nothing compared"
---@field equal boolean
---@field complete boolean  everything on both sides has a counterpart and was read
---@field matched integer  nodes
---@field first table?  the first tensor that differs, in execution order; fields as of `tensors`
---@field culprits table[]  of its step: tensors that differ although the inputs of their node agree
---@field tensors table[]  node_a, node_b, op, slot, step, step_a, state, role, equal, max_abs_error, max_abs_at, max_rel_error, mean_abs_error, cosine, max_ulp, within_tolerance, rtol, atol, nan_mismatch, inf_mismatch, error_in, amplification, worst_input, reason
---@field counts table  equal, close, different, reshaped, uncompared, dtype_changes
---@field only_a string[]  names of nodes without a counterpart
---@field only_b string[]
---@field edges_known boolean  false: a graph file is missing, so that nobody is called culprit or victim
---@field notes string[]  steps, ranks and graphs that only one side has
local diff = {}

---@return string
function diff:table() end
---@return string
function diff:json() end
---@return string
function diff:jsonl() end
---@return string
function diff:csv() end
---@return string
function diff:markdown() end
---@return string
function diff:junit() end

---@class msdbg.Tensor
local tensor = {}

---Element by element against another tensor of the same shape, e.g. `t:diff(t:previous(), 0.05)`. A number is MindInsight's tolerance: differences
---up to that share of the largest one are shown as 0. Printed, it is a table of statistics and a picture of the differences; `difference` is a
---tensor like any other.
---@param other msdbg.Tensor
---@param options? number|{ tolerance?: number, rtol?: number, atol?: number }
---@return table  equal, max_abs_error, max_abs_at, max_rel_error, mean_abs_error, cosine, max_ulp, within_tolerance, nan_mismatch, inf_mismatch, boundary, difference, stats, current_stats, other_stats
function tensor:diff(other, options) end

---Losses and metrics over steps: `msdbg.series` or `require "msdbg.series"`.
---@class msdbg.series
local series = {}

---From a log that a training printed (`pattern` is a regular expression whose groups are the value, or step and value; without one `loss is X`,
---`loss: X` and the like are found), from csv, or from a table of numbers or of { step =, value = }.
---@param from string|table
---@param options? { pattern?: string, column?: string }
---@return table  source, what, counted, steps, values
function series.read(from, options) end

---Two series, `b` being the yardstick. 1 in 1000 is taken for rounding unless `tolerance` says otherwise.
---@param a string|table
---@param b string|table
---@param options? { tolerance?: number, pattern?: string, column?: string }
---@return table  verdict ("alike", "forward", "backward", "later"), count, mean_abs_error, max_abs_error, max_rel_error, worst_step, parts_at, a_there, b_there, nonfinite_mismatch, only_a, only_b, next
function series.compare(a, b, options) end
