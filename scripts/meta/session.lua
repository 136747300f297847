---@meta
-- Stubs of sessions: what a dump, a checkpoint and a training have in common. User documentation: docs/lua.md.

---An open dump, checkpoint, recording or training. At the prompt it is `s`. After close() every method raises "session is closed".
---@class msdbg.Session
---@field kind "dump"|"checkpoint"|"live"|"recording"
---@field state "open"|"closed"|"waiting"|"connected"|"held"|"running"|"ended"|"lost"
---@field current_step integer?  the step that tensor() and value() use by default
---@field current_rank integer?  the rank that they use, and the default of `ranks`; nil: all ranks
---@field completed_steps integer?  live: number of steps that have ended
---@field current_node string?  live: the operator that ran last
---@field address string?  live: the address that msdbg listens on
---@field steps integer[]  those with data, ascending
---@field ranks integer[]  those with data, ascending
---@field graphs table[]  name, id, rank, root_id, nodes, steps, from_file
---@field info table  source, short_name, layout, epoch, framework (of calls), framework_version, device_target, nets; live: peer, ranks
---@field can table  step, continue, next_node, run_to, finish, pause, terminate, detach, attach, wait, goto_step, recheck
---@field last_result msdbg.Result?  of the last check; partial if it was interrupted
local session = {}

---@class msdbg.NodesOptions
---@field optional? boolean  no match gives an empty set instead of an error

---The nodes that a selector matches; without a selector, all nodes. If nothing matches, raises an error with the closest names.
---e.g. for n in s:nodes "op:MatMul and @gradient":each() do print(n.name) end
---@param selector? msdbg.Selector
---@param options? msdbg.NodesOptions
---@return msdbg.NodeSet
function session:nodes(selector, options) end

---@class msdbg.PlaceOptions
---@field rank? integer  default s.current_rank, else the first that has the node
---@field graph? integer  needed if several graphs have one: the graph's id

---One node, by full name or a unique ending of it; an ambiguous name raises an error that lists the candidates.
---e.g. local n = s:node "fc1-Dense/MatMul-op0"
---@param name string
---@param options? msdbg.PlaceOptions
---@return msdbg.Node
function session:node(name, options) end

---@class msdbg.TensorOptions
---@field step? integer  default s.current_step
---@field rank? integer  default s.current_rank, else the first that has the node
---@field graph? integer  needed if several graphs have one: the graph's id
---@field execution? integer  which execution of the node in the step, from 0

---One value: `NODE:output:0`, `NODE:0` or `NODE` for output 0, `NODE:input:1`. Returns nil, message, code if it was not
---dumped; raises an error if the node does not exist.
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
---@field ranks? msdbg.Numbers  default the current one, else all
---@field slots? string  "output" (default), "input", "all", or one slot such as "input:1"

---The dumped tensors, in execution order. Reads no tensor yet.
---e.g. for _, t in ipairs(s:tensors { on = "@weight", steps = "all" }) do print(t.step, t.name, t.stats.abs_mean) end
---@param options? msdbg.TensorsOptions
---@return msdbg.Tensor[]
function session:tensors(options) end

---@class msdbg.OverwrittenOptions
---@field steps? msdbg.Numbers  default the current one
---@field ranks? msdbg.Numbers  default the current one, else all

---Values that were overwritten between two calls, in a dump of msprobe: two records of one value that differ. Each has the place of the
---later record, `tensor` (the same), `before` (the place of the earlier one), `message` and `reason` (why they should be equal).
---e.g. for _, found in ipairs(s:overwritten { steps = "all" }) do print(found.node, found.message) end
---@param options? msdbg.OverwrittenOptions
---@return table[]
function session:overwritten(options) end

---Iterates over the steps and makes each the current one. Live: runs the training one step at a time until it ends.
---e.g. for step in s:each_step() do print(step, s:tensor("Log-op0").stats.nan_count) end
---@return fun(): integer?, msdbg.RunResult?
function session:each_step() end

---Makes `step` the current step; a step without data raises an error that lists the steps with data. Live: a negative number is relative
---to now; no argument goes to where the training is.
---@param step? integer
function session:goto_step(step) end

---Makes `rank` the current rank: the default of `ranks` and `rank` in all calls but replicas. Nothing or "all": every rank.
---@param rank? integer|"all"
function session:goto_rank(rank) end

---@class msdbg.WatchOptions
---@field on msdbg.Selector  which nodes; no match is an error unless `optional`
---@field when? string|fun(t: msdbg.Tensor, ctx: msdbg.Context): any  a condition, an expression, or a function: true or a table is a hit
---@field name? string  for hits and lists
---@field rule? string  a rule instead of `when`; its parameters are additional keys
---@field slots? string|integer  "output" (default), "input", "all", one slot such as "input:1", or the number of an output
---@field optional? boolean  no matching node is not an error
---@field enabled? boolean  false: keep it, but do not run it
---@field elements? boolean  false: the function uses only t.stats
---@field once? boolean  live: removed after its first hit
---@field ignore? integer  live: the number of hits that do not stop the training; all tensors that hit in one place count as one hit
---@field from_step? integer  live: hits in earlier steps do not stop the training
---@field commands? string[]  live: entries for the prompt to run when the watchpoint stops the training
---@field [string] any  parameters of the condition

---Adds a watchpoint. Parameters of the condition are additional keys, or part of its text. Raises an error if the selector matches nothing,
---or the condition or a parameter does not exist.
---e.g. s:watch { on = "@weight", when = "WCL", abs_mean_update_ratio_gt = 0.1 }
---e.g. s:watch { on = "op:ReLU", when = function(t) return t.stats.zero_percentage > 99 end }
---@param options msdbg.WatchOptions
---@return msdbg.Watch
function session:watch(options) end

---All watchpoints, sorted by number.
---@return msdbg.Watch[]
function session:watches() end
---Adds the watchpoints that MindInsight recommends; in a live session, without those that would stop in every step.
---@return msdbg.Watch[]
function session:watch_recommended() end

---@class msdbg.CheckOptions
---@field steps? msdbg.Numbers  default all; live: the current one
---@field ranks? msdbg.Numbers  default the current one, else all
---@field rules? string  run rules instead of the watchpoints: names, tags and globs with and, or, not; e.g. "default"
---@field rule_files? string|string[]  additional rule files or directories
---@field params? table<string, table>  rule name -> parameter -> value
---@field profile? string  a file with parameters of rules
---@field trust? boolean  also use rule files of the working directory (.msdbg/rules)
---@field rule_budget? number  time limit in seconds for one call of a rule's function, default 10
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field nan? "hit"|"clean"  what a condition says of a tensor that it cannot judge because of NaN; default: it is not checked
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB
---@field report_missing? boolean  tensors that were not dumped count as not checked
---@field max_hits? integer  the largest number of hits to keep; total_hits counts all

---Runs all watchpoints, or the default rules if there are none, and reads every tensor once. Live: msdbg evaluates them
---on the values of the current step.
---e.g. local r = s:check { steps = "0:10", rules = "default" }
---@param options? msdbg.CheckOptions
---@return msdbg.Result
function session:check(options) end

---Runs the last check again, from kept statistics if possible. Live: the training evaluates the watchpoints on the current values.
---@return msdbg.Result|msdbg.RunResult
function session:recheck() end

---Writes the watchpoints to a file that load_watches and the prompt's `source` can read, completely or not at all. A condition that is a
---function has no text form and is left out.
---@param path string
---@return integer written
---@return integer left_out
function session:save_watches(path) end

---Adds the watchpoints that save_watches wrote, all or none.
---@param path string
---@return msdbg.Watch[]
function session:load_watches(path) end

---Closes the session; later use raises "session is closed". A training that is still held is terminated.
function session:close() end
