---@meta
-- Stubs of comparisons: two sessions, two tensors, two losses. User documentation: docs/diff.md and docs/series.md.

---@class msdbg
local msdbg = {}

---@class msdbg.DiffOptions
---@field on? msdbg.Selector  nodes of `a`; default all
---@field steps? msdbg.Numbers  of both sides; default all that both have
---@field ranks? msdbg.Numbers  of both sides
---@field steps_a? msdbg.Numbers  if the steps have different numbers: compared in order with steps_b
---@field steps_b? msdbg.Numbers
---@field ranks_a? msdbg.Numbers
---@field ranks_b? msdbg.Numbers
---@field graph_a? integer  its id
---@field graph_b? integer
---@field rtol? number  a difference below atol + rtol * |b| is within tolerance
---@field atol? number
---@field map? string|table<string, string>  the names in `b` of nodes of `a`, or a file with them
---@field threads? integer  default: the number of cores

---Where two runs diverge: pairs nodes by name, then by structure, and compares every tensor of `a` with its
---counterpart in the reference `b`. Default for `b` is `a`, to compare two of its steps, ranks or graphs.
---e.g. print(msdbg.diff(s, msdbg.open "/data/good", { rtol = 1e-3 }))
---@param a msdbg.Session
---@param b? msdbg.Session
---@param options? msdbg.DiffOptions
---@return msdbg.Diff
function msdbg.diff(a, b, options) end

---A tensor on both sides: a plain table.
---@class msdbg.TensorDiff
---@field node_a string
---@field node_b string
---@field op string
---@field slot string
---@field step integer  of `b`
---@field step_a integer
---@field rank_a integer
---@field graph_id_a integer
---@field state string  how far it was compared
---@field role string?  its role in the fault: culprit, victim, unknown or random (an operator that draws random numbers)
---@field equal boolean  bit for bit
---@field max_abs_error number?
---@field max_abs_at integer[]?  coordinates
---@field max_rel_error number?
---@field mean_abs_error number?
---@field cosine number?  cosine of the angle between both
---@field max_ulp number?  distance in units of the last place
---@field within_tolerance number?  share of elements, 0 to 1
---@field rtol number
---@field atol number
---@field nan_mismatch integer?  elements that are NaN on one side only
---@field inf_mismatch integer?
---@field error_in number?  relative error of its inputs
---@field amplification number?  its relative error divided by that of its inputs
---@field worst_input string?
---@field reason string?  why it was not compared
---@field compared_by "elements"|"checksum"|"statistics"|nil  what the comparison is based on
---@field statistics { name: string, a: number?, b: number?, error: number? }[]?  without elements: what both sides know
---@field argument string?  recorded calls: the first scalar argument that differs

---The result of msdbg.diff. `print` shows the table of `msdbg diff`.
---@class msdbg.Diff
---@field verdict "equal"|"different"|"interrupted"|"nothing compared"
---@field a string  source of A
---@field b string  source of B
---@field equal boolean
---@field interrupted boolean  not everything was compared
---@field complete boolean  everything on both sides has a counterpart and was read
---@field matched integer  nodes
---@field matched_by { name: integer, structure: integer, value: integer, map: integer }  of these
---@field first msdbg.TensorDiff?  the first tensor that differs, in execution order; one behind a random operator only if there is no other
---@field culprits msdbg.TensorDiff[]  in that step: tensors that differ although the inputs of their node agree
---@field random msdbg.TensorDiff[]  operators that draw random numbers and differ although their inputs agree
---@field tensors msdbg.TensorDiff[]  all that were compared
---@field counts table  equal, close, different, reshaped, uncompared, dtype_changes, by_checksum, by_statistics
---@field only_a { rank: integer, graph: string, graph_id: integer, node: string, op: string }[]  nodes without a counterpart
---@field only_b { rank: integer, graph: string, graph_id: integer, node: string, op: string }[]
---@field edges_known boolean  false: a graph file is missing, so nodes are not classified as culprit or victim
---@field notes string[]  steps, ranks and graphs that only one side has
local diff = {}

---Text as `msdbg diff` prints it.
---@return string
function diff:table() end
---One JSON object; docs/json.md.
---@return string
function diff:json() end
---JSON lines, one tensor per line.
---@return string
function diff:jsonl() end
---CSV (RFC 4180), one tensor per line.
---@return string
function diff:csv() end
---Markdown for a comment on a merge request.
---@return string
function diff:markdown() end
---JUnit XML for CI servers.
---@return string
function diff:junit() end
---SARIF 2.1.0: the differences, at the source lines of B.
---@return string
function diff:sarif() end

---@class msdbg.Tensor
local tensor = {}

---Element by element against another tensor of the same shape. A number is MindInsight's tolerance: differences up to that share of the
---largest one are shown as 0. `print` shows statistics and a picture of the differences; `difference` is a tensor like any other.
---e.g. print(t:diff(assert(t:previous()), 0.05))
---@param other msdbg.Tensor
---@param options? number|{ tolerance?: number, rtol?: number, atol?: number }
---@return table  measures as of msdbg.TensorDiff, boundary, difference, stats, current_stats, other_stats
function tensor:diff(other, options) end

---Losses and metrics over steps: `msdbg.series` or `require "msdbg.series"`.
---@class msdbg.series
local series = {}

---From a log that a training printed, from csv, or from a table of numbers or of { step =, value = }. In a log it finds `loss is X`,
---`loss: X` and similar forms.
---e.g. msdbg.series.read("train.log", { pattern = [[step: (\d+).*acc: ([0-9.]+)]] })
---@param from string|table
---@param options? { pattern?: string, column?: string }  a regular expression whose groups are the value, or step and value; csv: a title
---@return table  source, what, counted, steps, values
function series.read(from, options) end

---How two series diverge: a plain table that `print` shows as text.
---@class msdbg.SeriesComparison
---@field verdict "close"|"forward"|"backward"|"later"  what to suspect: the forward pass, the update, or something later
---@field count integer  steps that both have
---@field mean_abs_error number?
---@field max_abs_error number
---@field max_rel_error number
---@field worst_step integer?
---@field diverges_at integer?  the first step beyond the tolerance
---@field a_value number?  values in that step
---@field b_value number?
---@field nonfinite_mismatch integer  steps that are finite on one side only
---@field only_a integer[]  steps
---@field only_b integer[]
---@field next string  what to do

---Compares two series; `b` is the reference. Differences of up to 1 in 1000 count as rounding unless `tolerance` says otherwise.
---@param a string|table
---@param b string|table
---@param options? { tolerance?: number, pattern?: string, column?: string }
---@return msdbg.SeriesComparison
function series.compare(a, b, options) end
