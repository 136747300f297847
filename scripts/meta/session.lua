---@meta
-- Stubs of sessions: what a dump, a checkpoint and a training share. docs/lua.md is the page for people.

---An open dump, or a training process. At the prompt it is `s`. After close() everything raises "session is closed".
---@class msdbg.Session
---@field kind "dump"|"checkpoint"|"live"|"recording"
---@field state "open"|"closed"|"waiting"|"connected"|"held"|"running"|"ended"|"lost"
---@field current_step integer?  what tensor() and value() mean without a step
---@field completed_steps integer?  live: that have run to their end
---@field current_node string?  live: the operator that ran last
---@field address string?  live: where it listens
---@field steps integer[]  with data, ascending
---@field ranks integer[]  with data, ascending
---@field graphs table[]  name, id, rank, root_id, nodes, steps, from_file
---@field info table  source, short_name, layout, epoch, framework_version, device_target, nets; live: peer
---@field can table  step, continue, next_node, run_to, pause, terminate, detach, wait, goto_step, recheck
---@field last_result msdbg.Result?  of the last check, partial if that was interrupted
local session = {}

---@class msdbg.NodesOptions
---@field optional? boolean  none is no error but an empty set

---Nodes that a selector matches; all without one. Raises with the nearest names when there is none.
---e.g. for n in s:nodes "op:MatMul and @gradient":each() do print(n.name) end
---@param selector? msdbg.Selector
---@param options? msdbg.NodesOptions
---@return msdbg.NodeSet
function session:nodes(selector, options) end

---@class msdbg.PlaceOptions
---@field rank? integer  where several ranks have a node of that name
---@field graph? integer  where several graphs have one: its id

---One node by full name or unique end of it; an ambiguous name raises and lists the candidates.
---e.g. local n = s:node "fc1-Dense/MatMul-op0"
---@param name string
---@param options? msdbg.PlaceOptions
---@return msdbg.Node
function session:node(name, options) end

---@class msdbg.TensorOptions
---@field step? integer  default s.current_step
---@field rank? integer  where several ranks have a node of that name
---@field graph? integer  where several graphs have one: its id
---@field execution? integer  which run of the node within the step, from 0

---One value: `NODE:output:0`, `NODE:0` or `NODE` for output 0, `NODE:input:1`. nil, message, code when it was not dumped; a node that
---does not exist raises.
---e.g. local t = assert(s:tensor("fc1.weight", { step = 3 }))
---@param name string
---@param options? msdbg.TensorOptions
---@return msdbg.Tensor? tensor
---@return string? message
---@return string? code  "not_found" or "no_data"
function session:tensor(name, options) end

---@class msdbg.TensorsOptions
---@field on? msdbg.Selector  default all
---@field steps? msdbg.Numbers  default the current one
---@field ranks? msdbg.Numbers  default all
---@field slots? string  "output" (default), "input", "all", or one such as "input:1"

---What was dumped, in execution order. Nothing is read yet.
---e.g. for _, t in ipairs(s:tensors { on = "@weight", steps = "all" }) do print(t.step, t.name, t.stats.abs_mean) end
---@param options? msdbg.TensorsOptions
---@return msdbg.Tensor[]
function session:tensors(options) end

---Iterates over the steps and makes each the current one. Live: runs the training step by step, until its end.
---e.g. for step in s:each_step() do print(step, s:tensor("Log-op0").stats.nan_count) end
---@return fun(): integer?, msdbg.RunResult?
function session:each_step() end

---Makes `step` the current one; a step without data raises and lists those that have some. Live: a negative number counts back from
---now, without one: to where the training is.
---@param step? integer
function session:goto_step(step) end

---@class msdbg.WatchOptions
---@field on msdbg.Selector  which nodes; none is an error unless `optional`
---@field when? string|fun(t: msdbg.Tensor, ctx: msdbg.Context): any  a condition, an expression, or a function: true or a table is a hit
---@field name? string  for hits and lists
---@field rule? string  a rule in place of `when`; its parameters are further keys
---@field slots? string|integer  "output" (default), "input", "all", one such as "input:1", or the number of an output
---@field optional? boolean  no matching node is no error
---@field enabled? boolean  false: kept, but not asked
---@field elements? boolean  false: the function looks at t.stats only
---@field [string] any  parameters of the condition

---Adds a watchpoint. Parameters of the condition are further keys, or stand in its text. Raises where the selector matches nothing, or
---the condition or a parameter does not exist.
---e.g. s:watch { on = "@weight", when = "WCL", abs_mean_update_ratio_gt = 0.1 }
---e.g. s:watch { on = "op:ReLU", when = function(t) return t.stats.zero_percentage > 99 end }
---@param options msdbg.WatchOptions
---@return msdbg.Watch
function session:watch(options) end

---All watchpoints, in the order of their numbers.
---@return msdbg.Watch[]
function session:watches() end
---MindInsight's proposals as watchpoints; on a training without those that would stop every step.
---@return msdbg.Watch[]
function session:watch_recommended() end

---@class msdbg.CheckOptions
---@field steps? msdbg.Numbers  default all; live: the current one
---@field ranks? msdbg.Numbers  default all
---@field rules? string  run rules instead of the watchpoints: names, tags and globs with and, or, not; e.g. "default"
---@field rule_files? string|string[]  rule files or directories more
---@field params? table<string, table>  rule name -> parameter -> value
---@field profile? string  a file with parameters of rules
---@field trust? boolean  take rule files of the working directory (.msdbg/rules), too
---@field rule_budget? number  seconds that one call of a rule's function may take, default 10
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: as many as there are cores
---@field mem_limit? number  MB
---@field report_missing? boolean  what was not dumped counts as not checked
---@field max_hits? integer  keep at most so many; total_hits counts all

---Runs all watchpoints, every tensor once. Without any it raises, unless `rules` are asked. Live: on the values of the current step,
---judged here.
---e.g. local r = s:check { steps = "0:10", rules = "default" }
---@param options? msdbg.CheckOptions
---@return msdbg.Result
function session:check(options) end

---The last check again; tensors that were seen are decided from their statistics. Live: the training judges the values at hand.
---@return msdbg.Result|msdbg.RunResult
function session:recheck() end

---Writes the watchpoints as a file that load_watches and the prompt's `source` understand, whole or not at all. A condition that is a
---function has no text and is left out.
---@param path string
---@return integer written
---@return integer left_out
function session:save_watches(path) end

---Makes the watchpoints that save_watches wrote, all or none.
---@param path string
---@return msdbg.Watch[]
function session:load_watches(path) end

---Gives the dump back; later use raises "session is closed". A training that still waits is ended.
function session:close() end
