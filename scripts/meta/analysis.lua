---@meta
-- Stubs of the commands that follow a finding through a run. User documentation: docs/follow.md.

---@class msdbg
local msdbg = {}

---@class msdbg.BisectOptions
---@field on msdbg.Selector|msdbg.Tensor
---@field when? string|fun(t: msdbg.Tensor): any  a condition, an expression or a function; default "nan or inf"
---@field steps? msdbg.Numbers  search only these; default all
---@field ranks? msdbg.Numbers  each rank is searched separately; default all
---@field graph? integer  its id
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---The first step in which a predicate holds, by binary search: it reads at most 11 of 1000 steps. A step without the tensor is replaced by
---the nearest one that has it.
---@param session msdbg.Session
---@param options msdbg.BisectOptions
---@return msdbg.Bisect
function msdbg.bisect(session, options) end

---@class msdbg.TrendOptions
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default all
---@field graph? integer  its id
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---A statistic over the steps, one line per tensor. Without a selector: every node.
---@param session msdbg.Session
---@param statistic string  a field of msdbg.Stats
---@param on? msdbg.Selector|msdbg.Tensor
---@param options? msdbg.TrendOptions
---@return msdbg.Trend
function msdbg.trend(session, statistic, on, options) end

---@class msdbg.HistogramsOptions
---@field bins? integer  1 to 10000, default 20; with exponents: at most so many
---@field min? number  the first edge, default the smallest element of all
---@field max? number  the last edge, default the largest element of all
---@field log? boolean  magnitudes, in bins of equal ratio
---@field exponents? boolean  magnitudes by powers of two, and the loss scale that float16 needs
---@field slice? string  part of each, in NumPy notation
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default all
---@field graph? integer  its id
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---How the elements of tensors are distributed, in the same bins for every tensor and step.
---e.g. print(s:histogram("@gradient", { exponents = true }))
---@param session msdbg.Session
---@param tensor msdbg.Selector|msdbg.Tensor
---@param options? msdbg.HistogramsOptions
---@return msdbg.Histograms
function msdbg.histogram(session, tensor, options) end

---@class msdbg.ReproOptions
---@field step? integer  default s.current_step
---@field execution? integer  which execution of the operator in the step, from 0
---@field rank? integer  needed if several ranks have a node of that name
---@field graph? integer  needed if several graphs have one: the graph's id

---Writes an operator's inputs, outputs and attributes into a new directory, with a Python program that runs it again.
---e.g. print(s:repro("Log-op0", "log"))
---@param session msdbg.Session
---@param node string|msdbg.Node
---@param directory string  must not exist, or be empty
---@param options? msdbg.ReproOptions
---@return msdbg.Repro
function msdbg.repro(session, node, directory, options) end

---@class msdbg.Repro
---@field directory string
---@field name string
---@field op string
---@field inputs table[]  slot, producer, producer_slot, dtype, shape, and one of file, constant, missing
---@field outputs table[]  slot, dtype, shape, and one of file, missing

---@class msdbg.LayersOptions
---@field on? msdbg.Selector  only these parameters
---@field by_layer? boolean  one row for encoder.layers.3 instead of one for each of its parameters
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default all
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---Each trained parameter: mean magnitude of weight and gradient, change per update, zeros, NaN, over the steps.
---@param session msdbg.Session
---@param options? msdbg.LayersOptions
---@return msdbg.Layers
function msdbg.layers(session, options) end

---@class msdbg.ReplicasOptions
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default all
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---Values that ranks must share bit for bit, and the rank that differs: weights, optimizer states, outputs of AllReduce, updates.
---@param session msdbg.Session
---@param options? msdbg.ReplicasOptions
---@return msdbg.Replicas
function msdbg.replicas(session, options) end

---@class msdbg.PropagationOptions
---@field when? string|fun(t: msdbg.Tensor): any  what is bad; default "nan or inf"
---@field up? boolean  trace where it came from instead of where it went
---@field step? integer  default s.current_step
---@field rank? integer  needed if several ranks have a node of that name
---@field graph? integer  needed if several graphs have one: the graph's id
---@field execution? integer  which execution of the node in the step, from 0
---@field steps? msdbg.Numbers  where to search for the fault
---@field ranks? msdbg.Numbers
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---How a bad tensor spread in its step, or with `up` where it came from.
---@param session msdbg.Session
---@param tensor string|msdbg.Tensor
---@param options? msdbg.PropagationOptions
---@return msdbg.Propagation
function msdbg.propagation(session, tensor, options) end

---Why a tensor has no value: not dumped, fused, not executed, unreadable, or nonexistent.
---@param session msdbg.Session
---@param tensor string|msdbg.Tensor
---@param options? msdbg.TensorOptions
---@return msdbg.Why
function msdbg.why(session, tensor, options) end

---@class msdbg.SourceOptions
---@field file? string  one of the program's files; default all
---@field root? string  where to look for the files if they have moved since the training
---@field framework? boolean  include lines of installed packages

---The user's program with findings and statistics next to its lines. Default result: that of session:check().
---@param session msdbg.Session
---@param result? msdbg.Result
---@param options? msdbg.SourceOptions
---@return msdbg.Source
function msdbg.source(session, result, options) end

---@class msdbg.PlanOptions
---@field on? msdbg.Selector  nodes to dump; default all
---@field around? string  instead: this node and its neighbours
---@field hops? integer  how far `around` goes, default 2
---@field steps? msdbg.Numbers  ranges need an end; default every step
---@field mode? "tensor"|"statistic"|"full"  default: depends on the number of nodes and the device
---@field slots? "both"|"inputs"|"outputs"  with "inputs" MindSpore dumps no parameters
---@field path? string  where the run will write the dump
---@field net_name? string  the directory below the path; default as in the dump
---@field version? string  release of MindSpore that will run; default that of the dump

---MindSpore's dump settings for chosen nodes and steps, with an estimate of their cost. Without `on` and `around`: all nodes, as
---statistics if the device supports them. docs/dump-plan.md explains the options.
---e.g. print(msdbg.plan(s, { around = "Log-op0", hops = 1, steps = "0:1" }))
---@param session msdbg.Session
---@param options? msdbg.PlanOptions
---@return msdbg.Plan
function msdbg.plan(session, options) end

---@class msdbg.Session
local session = {}

---Same as msdbg.plan.
---@param options? msdbg.PlanOptions
---@return msdbg.Plan
function session:plan(options) end

---Same as msdbg.bisect.
---e.g. print(s:bisect { on = "@weight", when = "TO" }.first)
---@param options msdbg.BisectOptions
---@return msdbg.Bisect
function session:bisect(options) end
---Same as msdbg.trend.
---e.g. print(s:trend("l2_norm", "@gradient"))
---@param statistic string
---@param on? msdbg.Selector|msdbg.Tensor
---@param options? msdbg.TrendOptions
---@return msdbg.Trend
function session:trend(statistic, on, options) end
---Same as msdbg.repro.
---@param node string|msdbg.Node
---@param directory string
---@param options? msdbg.ReproOptions
---@return msdbg.Repro
function session:repro(node, directory, options) end
---Same as msdbg.histogram.
---e.g. print(s:histogram("fc1.weight", { bins = 40 }))
---@param tensor msdbg.Selector|msdbg.Tensor
---@param options? msdbg.HistogramsOptions
---@return msdbg.Histograms
function session:histogram(tensor, options) end
---Same as msdbg.layers.
---e.g. print(s:layers { by_layer = true })
---@param options? msdbg.LayersOptions
---@return msdbg.Layers
function session:layers(options) end
---Same as msdbg.replicas.
---e.g. print(s:replicas())
---@param options? msdbg.ReplicasOptions
---@return msdbg.Replicas
function session:replicas(options) end
---Same as msdbg.propagation.
---e.g. print(s:propagation("Log-op0", { up = true }))
---@param tensor string|msdbg.Tensor
---@param options? msdbg.PropagationOptions
---@return msdbg.Propagation
function session:propagation(tensor, options) end
---Same as msdbg.why.
---e.g. print(s:why "Log-op0:input:0")
---@param tensor string|msdbg.Tensor
---@param options? msdbg.TensorOptions
---@return msdbg.Why
function session:why(tensor, options) end
---Same as msdbg.source.
---@param result? msdbg.Result
---@param options? msdbg.SourceOptions
---@return msdbg.Source
function session:source(result, options) end

---The fields of the first rank are also fields of the result.
---@class msdbg.Bisect
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
---@field tensors table[]  node, slot, rank, graph_id, execution, first, last, min, max, ends, change, points
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
---@field differences table[]  the value's place, cause, odd_ranks, other_ranks, decided, assumed, elements, of, first, values, bits, single_flip, problem, steps, first_operator, seen, expected, reached, text, source
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

---@class msdbg.Propagation
---@field predicate string
---@field direction "down"|"up"
---@field holds boolean  false: the tensor is good
---@field tensor table
---@field nodes table[]?  index, node, op, kind, execution, role, distance, slot, step, reason, stats, stack
---@field edges table[]?  from, to (indexes), output, input, update, bad
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

return msdbg

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
