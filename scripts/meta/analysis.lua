---@meta
-- Stubs of what follows a question through a run. docs/follow.md is the page for people.

---@class msdbg
local msdbg = {}

---@class msdbg.BisectOptions
---@field on msdbg.Selector|msdbg.Tensor
---@field when? string|fun(t: msdbg.Tensor): any  a condition, an expression or a function; default "nan or inf"
---@field steps? msdbg.Numbers  search only these; default all
---@field ranks? msdbg.Numbers  each is searched by itself; default all
---@field graph? integer  its id
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: as many as there are cores
---@field mem_limit? number  MB

---The first step in which something holds, found by halving: 11 of 1000 steps are read at most. A step without the tensor is replaced
---by the nearest one that has it.
---@param session msdbg.Session
---@param options msdbg.BisectOptions
---@return msdbg.Bisect
function msdbg.bisect(session, options) end

---@class msdbg.TrendOptions
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default all
---@field graph? integer  its id
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: as many as there are cores
---@field mem_limit? number  MB

---A statistic over the steps, one line per tensor. Without a selector: every node.
---@param session msdbg.Session
---@param statistic string  a field of msdbg.Stats
---@param on? msdbg.Selector|msdbg.Tensor
---@param options? msdbg.TrendOptions
---@return msdbg.Trend
function msdbg.trend(session, statistic, on, options) end

---@class msdbg.PropagationOptions
---@field when? string|fun(t: msdbg.Tensor): any  what is bad; default "nan or inf"
---@field up? boolean  where it came from instead of where it went
---@field step? integer  default s.current_step
---@field rank? integer  where several ranks have a node of that name
---@field graph? integer  where several graphs have one: its id
---@field execution? integer  which run of the node within the step, from 0
---@field steps? msdbg.Numbers  of the search for the fault
---@field ranks? msdbg.Numbers
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: as many as there are cores
---@field mem_limit? number  MB

---How a bad tensor spread in its step, or with `up` where it came from.
---@param session msdbg.Session
---@param tensor string|msdbg.Tensor
---@param options? msdbg.PropagationOptions
---@return msdbg.Propagation
function msdbg.propagation(session, tensor, options) end

---Why a tensor has no value: not dumped, fused, not executed, unreadable, never there.
---@param session msdbg.Session
---@param tensor string|msdbg.Tensor
---@param options? msdbg.TensorOptions
---@return msdbg.Why
function msdbg.why(session, tensor, options) end

---@class msdbg.SourceOptions
---@field file? string  one of the program's files; default all
---@field root? string  where the files are looked for, when they are not where the training had them
---@field framework? boolean  lines of installed packages, too

---The user's program with findings and statistics beside its lines. Without a result: those of session:check().
---@param session msdbg.Session
---@param result? msdbg.Result
---@param options? msdbg.SourceOptions
---@return msdbg.Source
function msdbg.source(session, result, options) end

---@class msdbg.PlanOptions
---@field on? msdbg.Selector  nodes to dump; default everything
---@field around? string  instead: this node and its neighbours
---@field hops? integer  how far `around` goes, default 2
---@field steps? msdbg.Numbers  with an end; default every step
---@field mode? "tensor"|"statistic"|"full"  default: what the amount of nodes and the device allow
---@field slots? "both"|"inputs"|"outputs"  with "inputs" MindSpore writes no parameter
---@field path? string  where the run is to write the dump
---@field net_name? string  the directory below the path; default as in the dump
---@field version? string  of the MindSpore that will run; default that of the dump

---MindSpore's dump configuration for chosen nodes and steps, and what it will cost. Without `on` and `around`: everything, as statistics
---where the device has them. docs/dump-plan.md tells what the options mean.
---e.g. print(msdbg.plan(s, { around = "Log-op0", hops = 1, steps = "0:1" }))
---@param session msdbg.Session
---@param options? msdbg.PlanOptions
---@return msdbg.Plan
function msdbg.plan(session, options) end

---@class msdbg.Session
local session = {}

---As msdbg.plan.
---@param options? msdbg.PlanOptions
---@return msdbg.Plan
function session:plan(options) end

---As msdbg.bisect.
---e.g. print(s:bisect { on = "@weight", when = "TO" }.first)
---@param options msdbg.BisectOptions
---@return msdbg.Bisect
function session:bisect(options) end
---As msdbg.trend.
---e.g. print(s:trend("l2_norm", "@gradient"))
---@param statistic string
---@param on? msdbg.Selector|msdbg.Tensor
---@param options? msdbg.TrendOptions
---@return msdbg.Trend
function session:trend(statistic, on, options) end
---As msdbg.propagation.
---e.g. print(s:propagation("Log-op0", { up = true }))
---@param tensor string|msdbg.Tensor
---@param options? msdbg.PropagationOptions
---@return msdbg.Propagation
function session:propagation(tensor, options) end
---As msdbg.why.
---e.g. print(s:why "Log-op0:input:0")
---@param tensor string|msdbg.Tensor
---@param options? msdbg.TensorOptions
---@return msdbg.Why
function session:why(tensor, options) end
---As msdbg.source.
---@param result? msdbg.Result
---@param options? msdbg.SourceOptions
---@return msdbg.Source
function session:source(result, options) end

---Fields of the first rank can be read without the list.
---@class msdbg.Bisect
---@field ranks table[]  rank, first, last_before, monotone, counterexample, steps, looked_at, reads, skipped, open, probes
---@field first integer?  step
---@field last_before integer?
---@field monotone boolean  in what was seen
---@field counterexample integer?
---@field steps integer  that were there to be searched
---@field looked_at integer
---@field reads integer  tensors
---@field probes table[]  step, holds (nil: undecided), tensors, undecided, reason, hits, stats
---@field target string
---@field predicate string
local bisect = {}
---For people, as the command prints it.
---@return string
function bisect:table() end
---One object; docs/json.md.
---@return string
function bisect:json() end
---One probe a line.
---@return string
function bisect:jsonl() end

---@class msdbg.Trend
---@field statistic string
---@field target string
---@field steps integer[]
---@field tensors table[]  node, slot, rank, graph_id, execution, first, last, min, max, ends, change, points
local trend = {}
---For people, as the command prints it.
---@return string
function trend:table() end
---One object; docs/json.md.
---@return string
function trend:json() end
---One tensor a line.
---@return string
function trend:jsonl() end
---RFC 4180, a point a line.
---@return string
function trend:csv() end
---A table of Markdown.
---@return string
function trend:markdown() end

---@class msdbg.Propagation
---@field predicate string
---@field direction "down"|"up"
---@field holds boolean  false: the tensor is sound
---@field tensor table
---@field nodes table[]?  index, node, op, kind, execution, passage, distance, slot, step, reason, stats, stack
---@field edges table[]?  from, to (indexes), output, input, update, bad
---@field bad_in_step integer
---@field edges_known boolean  false: there is no readable graph file, hence no nodes, edges and bad_elsewhere
---@field bad_elsewhere integer?
---@field clean_outputs integer
local propagation = {}
---For people, as the command prints it.
---@return string
function propagation:table() end
---One object; docs/json.md.
---@return string
function propagation:json() end
---One node a line.
---@return string
function propagation:jsonl() end
---A table of Markdown.
---@return string
function propagation:markdown() end
---The graph for Graphviz.
---@return string
function propagation:dot() end
---The graph as a picture; raises where the program was built without Graphviz.
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
---For people, as the command prints it.
---@return string
function why:table() end
---One object; docs/json.md.
---@return string
function why:json() end
---One line.
---@return string
function why:jsonl() end

---@class msdbg.Source
---@field files table[]  path, read_from, note, findings, lines: those with operators
---@field steps integer[]
local source = {}
---For people, as the command prints it.
---@return string
function source:table() end
---One object; docs/json.md.
---@return string
function source:json() end
---One line of the program a line.
---@return string
function source:jsonl() end
---A table of Markdown.
---@return string
function source:markdown() end

return msdbg

---Printed, it is the file that MINDSPORE_DUMP_CONFIG names.
---@class msdbg.Plan
---@field text string  what the file holds
---@field configuration table  the same, decoded
---@field nodes integer  chosen that a run can write
---@field left_out integer  chosen that never have a value
---@field bytes_per_step integer?  nil: no size is known, since there is no readable graph file
---@field files_per_step integer
---@field unknown_sizes integer
---@field steps integer?  how many; nil: every step is written
---@field notes string[]
