---@meta
-- Stubs of the results of commands that follow a finding through a run. User documentation: docs/follow.md.

---The fields of the first rank are also fields of the result.
---@class msdbg.Bisect
---@field first_ranks integer[]  with several ranks: those where it holds first
---@field ranks table[]  rank, first, last_before, monotone, counterexample, steps, looked_at, reads, skipped, open, probes
---@field first integer?  step
---@field last_before integer?
---@field monotone boolean  in the steps that were checked
---@field counterexample integer?
---@field steps integer  number of steps to search
---@field looked_at integer
---@field reads integer  tensors
---@field probes table[]  step, holds (nil: undecided), tensors, undecided, reason, hits, stats
---@field target string
---@field predicate string
local bisect = {}
---Text as the command prints it.
---@return string
function bisect:table() end
---One JSON object; docs/json.md.
---@return string
function bisect:json() end
---JSON lines, one probe per line.
---@return string
function bisect:jsonl() end

---@class msdbg.Trend
---@field statistic string
---@field target string
---@field steps integer[]
---@field tensors table[]  node, slot, rank, ranks (with the same points), graph_id, execution, first, last, min, max, ends, change, departs, points
local trend = {}
---Text as the command prints it.
---@return string
function trend:table() end
---One JSON object; docs/json.md.
---@return string
function trend:json() end
---JSON lines, one tensor per line.
---@return string
function trend:jsonl() end
---CSV (RFC 4180), one point per line.
---@return string
function trend:csv() end
---A Markdown table.
---@return string
function trend:markdown() end

---@class msdbg.Histograms
---@field target string
---@field scale string  linear, log or exponent
---@field edges number[]  of all tensors; empty if none could be read
---@field steps integer[]
---@field loss_scale table?  with exponents: what float16 needs: least_exponent, most_exponent, largest_exponent, fits, subnormal_percentage, lost_percentage
---@field tensors table[]  node, slot, gradient_of, step, rank, graph, graph_id, execution, op, dtype, counts, zeros, below, above, nan, inf, reason
local histograms = {}
---Text as the command prints it.
---@return string
function histograms:table() end
---One JSON object; docs/json.md.
---@return string
function histograms:json() end
---JSON lines, one tensor per line.
---@return string
function histograms:jsonl() end
---CSV (RFC 4180), one bin per line.
---@return string
function histograms:csv() end
---A Markdown table.
---@return string
function histograms:markdown() end

---@class msdbg.Layers
---@field steps integer[]
---@field by_layer boolean
---@field frozen string[]  weights that no optimizer updates
---@field layers table[]  name, parameters, elements, weight, gradient, update, updates, zero_percentage, gradient_zero_percentage, first_bad, gradient_node, gradient_slot, points, source, problem, rank, graph, graph_id, step
local layers = {}
---Text as the command prints it.
---@return string
function layers:table() end
---One JSON object; docs/json.md.
---@return string
function layers:json() end
---JSON lines, one row per line.
---@return string
function layers:jsonl() end
---CSV (RFC 4180), one row per line.
---@return string
function layers:csv() end
---A Markdown table.
---@return string
function layers:markdown() end

---@class msdbg.Replicas
---@field ranks integer[]
---@field steps integer[]
---@field nothing string?  why nothing could be compared
---@field sets table[]  ranks, what, assumed, reason, tensors, different
---@field not_replicated table[]  reason, tensors, examples
---@field differences table[]  the value's place, cause, odd_ranks, other_ranks, decided, assumed, elements, of, first, values, bits, single_flip, moved, own_way, held, alone, staying, problem, arguments, called, steps, first_operator, seen, expected, reached, also, not_seen, text, source
---@field coverage table
---@field not_checked table[]
local replicas = {}
---Text as the command prints it.
---@return string
function replicas:table() end
---One JSON object; docs/json.md.
---@return string
function replicas:json() end
---JSON lines, one difference per line.
---@return string
function replicas:jsonl() end
---CSV (RFC 4180), one difference per line.
---@return string
function replicas:csv() end
---A Markdown table.
---@return string
function replicas:markdown() end

---@class msdbg.Settings
---@field ranks integer[]
---@field steps integer[]
---@field settings table[]  name, role, from, node, elements, differs, series: ranks and their values in these steps
local settings = {}
---Text as the command prints it.
---@return string
function settings:table() end
---One JSON object; docs/json.md.
---@return string
function settings:json() end
---JSON lines, one setting per line.
---@return string
function settings:jsonl() end
---CSV (RFC 4180), one set of ranks per line.
---@return string
function settings:csv() end
---A Markdown table.
---@return string
function settings:markdown() end

---@class msdbg.Propagation
---@field predicate string
---@field direction "down"|"up"
---@field holds boolean  false: the tensor is good
---@field tensor table
---@field moment "start"|"end"|nil  when a parameter that the step updates had the value of `stats`
---@field nodes table[]?  index, rank, graph_id, node, op, kind, execution, role, distance, slot, step, reason, stats, stack
---@field edges table[]?  from, to (indexes), output, input, update, bad; between ranks: collective, group, assumed
---@field ranks_reached table[]  other ranks that got it through collectives: rank, through, group, assumed, collectives, tensors, sound_loss
---@field bad_in_step integer
---@field edges_known boolean  false: there is no readable graph file, hence no nodes, edges and bad_elsewhere
---@field bad_elsewhere integer?
---@field clean_outputs integer
local propagation = {}
---Text as the command prints it.
---@return string
function propagation:table() end
---One JSON object; docs/json.md.
---@return string
function propagation:json() end
---JSON lines, one node per line.
---@return string
function propagation:jsonl() end
---A Markdown table.
---@return string
function propagation:markdown() end
---The graph for Graphviz.
---@return string
function propagation:dot() end
---The graph as a picture; raises an error if the program was built without Graphviz.
---@return string
function propagation:svg() end

---@class msdbg.Why
---@field asked string
---@field kind string  "has_value", "fused", "not_executed", ...
---@field answer string
---@field evidence { text: string, path: string? }[]
---@field instead string[]
---@field next string?
---@field tensor table?
local why = {}
---Text as the command prints it.
---@return string
function why:table() end
---One JSON object; docs/json.md.
---@return string
function why:json() end
---One line.
---@return string
function why:jsonl() end

---@class msdbg.Source
---@field files table[]  path, read_from, note, findings, lines: those with operators
---@field steps integer[]
local source = {}
---Text as the command prints it.
---@return string
function source:table() end
---One JSON object; docs/json.md.
---@return string
function source:json() end
---JSON lines, one line of the program per line.
---@return string
function source:jsonl() end
---A Markdown table.
---@return string
function source:markdown() end

---Prints as the file for MINDSPORE_DUMP_CONFIG.
---@class msdbg.Plan
---@field text string  contents of the file
---@field configuration table  the same, decoded
---@field nodes integer  chosen nodes that a run can write
---@field left_out integer  chosen nodes that never have a value
---@field bytes_per_step integer?  nil: no size is known without a readable graph file
---@field files_per_step integer
---@field unknown_sizes integer
---@field steps integer?  how many; nil: every step is written
---@field notes string[]
