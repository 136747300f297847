---@meta
-- Stubs of the msdbg library for editors (LuaLS). Written by hand; a test compares them with the bindings.

---@class msdbg
---@field version string  of this program
local msdbg = {}

---Opens a dump directory, or a recording of a live session.
---@param path string
---@param options? { rank?: integer|string|integer[], net?: string, mem_limit?: number, semantics?: "compat"|"finite", threads?: integer }
---@return msdbg.Session
function msdbg.open(path, options) end

---Waits until a training process has connected and is held. nil, message, code when nobody came within `wait` seconds.
---@param options? { port?: integer, bind?: string, record?: string, wait?: number|false, history?: integer, mem_limit?: number, semantics?: string, threads?: integer }
---@return msdbg.Session? session
---@return string? message
---@return string? code
function msdbg.listen(options) end

---For each step, the first output that is bad while the inputs of its operator are sound.
---@param session msdbg.Session
---@param options? { when?: string|fun(t: msdbg.Tensor): any, steps?: msdbg.Numbers, ranks?: msdbg.Numbers, semantics?: string, threads?: integer, mem_limit?: number }
---@return msdbg.Origins
function msdbg.origin(session, options) end

---What an expression costs: passes over the tensor, what the statistics give, operations per element.
---@param expression string
---@return string
function msdbg.explain(expression) end

---A result as text.
---@param session msdbg.Session
---@param result msdbg.Result|msdbg.Origins
---@return msdbg.Report
function msdbg.report(session, result) end

---Ends with a mistake of the user: the message is shown without a traceback.
---@param message string
function msdbg.fail(message) end

---@alias msdbg.Numbers integer|string|integer[]  3, "0:10", "2:", "all", { 0, 4 }
---@alias msdbg.Selector string|msdbg.Node|msdbg.NodeSet|(string|msdbg.Node)[]

---An open dump, or a training process.
---@class msdbg.Session
---@field kind "dump"|"live"|"recording"
---@field state "open"|"closed"|"waiting"|"connected"|"held"|"running"|"ended"|"lost"
---@field current_step integer?  what tensor() and value() mean without a step
---@field completed_steps integer?  live: that have run to their end
---@field current_node string?  live: the operator that ran last
---@field address string?  live: where it listens
---@field steps integer[]  with data, ascending
---@field ranks integer[]
---@field graphs table[]  name, id, rank, root_id, nodes, steps, from_file
---@field info table  source, short_name, layout, epoch, framework_version, device_target, nets; live: peer
---@field can table  step, continue, next_node, run_to, pause, terminate, detach, wait, goto_step, recheck
---@field last_result msdbg.Result?  of the last check, partial if that was interrupted
local session = {}

---Nodes that a selector matches; all without one. With `optional` none is no error.
---@param selector? msdbg.Selector
---@param options? { optional?: boolean }
---@return msdbg.NodeSet
function session:nodes(selector, options) end

---One node by full name or unique end of it; an ambiguous name raises and lists the candidates.
---@param name string
---@param options? { rank?: integer, graph?: integer }
---@return msdbg.Node
function session:node(name, options) end

---One value: `NODE:output:0`, `NODE:0`, `NODE:input:1`. nil, message, code when it was not dumped.
---@param name string
---@param options? { step?: integer, rank?: integer, graph?: integer, execution?: integer }
---@return msdbg.Tensor? tensor
---@return string? message
---@return string? code
function session:tensor(name, options) end

---What was dumped, in execution order; of the current step unless `steps` says otherwise.
---@param options? { on?: msdbg.Selector, steps?: msdbg.Numbers, ranks?: msdbg.Numbers, slots?: string }
---@return msdbg.Tensor[]
function session:tensors(options) end

---Iterates over the steps and makes each the current one. Live: runs the training step by step, until its end.
---@return fun(): integer?, msdbg.RunResult?
function session:each_step() end

---Live: a negative number counts back from now, without one: to where the training is.
---@param step? integer
function session:goto_step(step) end

---Live: runs steps.
---@param n? integer|{ n?: integer, node?: string|msdbg.Node, timeout?: number }  default 1
---@return msdbg.RunResult
function session:step(n) end
---Live: runs until a hit, the end, or Ctrl-C; at most so many steps or seconds.
---@param options? { steps?: integer, timeout?: number }
---@return msdbg.RunResult
function session:continue(options) end
---Live: runs the next operator.
---@param options? { timeout?: number }
---@return msdbg.RunResult
function session:next_node(options) end
---Live: runs until a node has run.
---@param node string|msdbg.Node
---@param options? { timeout?: number }
---@return msdbg.RunResult
function session:run_to(node, options) end
---Live: waits for the next suspension.
---@param options? { timeout?: number }
---@return msdbg.RunResult
function session:pause(options) end
---Live: ends the training.
---@param options? { timeout?: number }
---@return msdbg.RunResult
function session:terminate(options) end
---Live: removes the watchpoints and lets the training run to its end; it is answered as long as msdbg runs.
function session:detach() end
---Live: until the training is held, or after detach() over; the state. nil, message, code when the time was not enough.
---@param options? { timeout?: number }
---@return string? state
---@return string? message
---@return string? code
function session:wait(options) end
---Live: calls `fn` for each hit (hit, result), at the end of each step (step; false stops there), or at the end of the training
---(result). false forgets the functions of that event.
---@param event "hit"|"step"|"end"
---@param fn function|false
function session:on(event, fn) end

---Adds a watchpoint. Parameters of the condition are further keys.
---@param options { on: msdbg.Selector, when: string|fun(t: msdbg.Tensor, ctx: msdbg.Context): any, name?: string, slots?: string|integer, optional?: boolean, enabled?: boolean, elements?: boolean, [string]: any }
---@return msdbg.Watch
function session:watch(options) end

---@return msdbg.Watch[]
function session:watches() end
---MindInsight's proposals as watchpoints; on a training without those that would stop every step.
---@return msdbg.Watch[]
function session:watch_recommended() end

---Runs all watchpoints, every tensor once. Live: on the values of the current step, judged here.
---@param options? { steps?: msdbg.Numbers, ranks?: msdbg.Numbers, semantics?: string, threads?: integer, mem_limit?: number, report_missing?: boolean, max_hits?: integer }
---@return msdbg.Result
function session:check(options) end

---The last check again; tensors that were seen are decided from their statistics. Live: the training judges the values at hand.
---@return msdbg.Result|msdbg.RunResult
function session:recheck() end

---Gives the dump back; later use raises "session is closed".
function session:close() end

---Several nodes: `#set`, `set[i]`.
---@class msdbg.NodeSet
local node_set = {}

---@return fun(): msdbg.Node?
function node_set:each() end
---@param keep fun(n: msdbg.Node): any
---@return msdbg.NodeSet
function node_set:filter(keep) end
---@param make fun(n: msdbg.Node): any
---@return any[]  results that are not nil
function node_set:map(make) end
---@param other msdbg.NodeSet
---@return msdbg.NodeSet
function node_set:union(other) end
---@param n? integer  default 1
---@return msdbg.NodeSet
function node_set:first(n) end
---@return string[]
function node_set:names() end

---@class msdbg.Node
---@field name string  full name with scopes
---@field op string  operator type
---@field kind "operator"|"parameter"|"constant"
---@field scope string
---@field rank integer
---@field graph string
---@field graph_id integer
---@field inputs { node: msdbg.Node?, slot: string?, name: string }[]
---@field outputs { dtype: string, shape: integer[]? }[]
---@field users { node: msdbg.Node, slot: string, output: string, name: string }[]
---@field stack { file: string, line: integer, code: string }[]  innermost first
---@field attrs table<string, string>
---@field trainable boolean
local node = {}

---The value of a parameter or constant; nil, message, code when it was not dumped.
---@param options? { step?: integer, execution?: integer }
---@return msdbg.Tensor?, string?, string?
function node:value(options) end
---@param slot? integer  default 0
---@param options? { step?: integer, execution?: integer }
---@return msdbg.Tensor?, string?, string?
function node:output(slot, options) end
---@param slot? integer  default 0
---@param options? { step?: integer, execution?: integer }
---@return msdbg.Tensor?, string?, string?
function node:input(slot, options) end

---@class msdbg.Tensor
---@field dtype string
---@field shape integer[]
---@field size integer  elements
---@field bytes integer
---@field step integer
---@field rank integer
---@field node msdbg.Node
---@field slot string
---@field execution integer
---@field name string
---@field source string  the file
---@field stats msdbg.Stats  computed once
---@field note string?  what is uncertain about it
---@field problem string?  why it cannot be evaluated
local tensor = {}

---Elements for hot loops: v[i] from 0 to v.n - 1, flat and row-major. 64-bit integers round to double.
---@return msdbg.View
function tensor:view() end
---One element; coordinates count from 0.
---@param ... integer
---@return number
function tensor:at(...) end
---Part of it, as NumPy writes it: "0:2,:,3". The result exists in memory only.
---@param text string
---@return msdbg.Tensor
function tensor:slice(text) end
---@param options? { bins?: integer }
---@return { edges: number[], counts: integer[], nonfinite: integer, text: string }
function tensor:histogram(options) end
---Of the finite elements, interpolated; nil when there are none.
---@param q number  0 to 1
---@return number?
function tensor:quantile(q) end
---NaN first, then infinities, then the largest magnitudes.
---@param k? integer  default 10
---@return msdbg.Place[]
function tensor:worst(k) end
---Elements that satisfy a predicate, and how many there are: an expression with a truth value for each element, one of nan, inf,
---bad, finite, zero, or a function of the value.
---@param predicate string|fun(x: number): any
---@param options? { limit?: integer }
---@return msdbg.Place[] places
---@return integer total
function tensor:where(predicate, options) end
---The value of an expression: a number or a truth value; a list of them for an element-wise one, in row-major order.
---@param expression string
---@return number|boolean|table
function tensor:eval(expression) end
---The same value in the last earlier step that has it.
---@return msdbg.Tensor?, string?, string?
function tensor:previous() end
---mean |x - p| / (1e-9 + mean |p|) over elements that are finite in both; nil when there are none.
---@param other msdbg.Tensor
---@return number?
function tensor:change_ratio(other) end
---Writes an .npy file, whole or not at all.
---@param path string
function tensor:save(path) end
---Forgets the loaded elements; views stay valid.
function tensor:release() end

---@alias msdbg.Place { [integer]: integer, value: number, index: integer }

---@class msdbg.View
---@field n integer
---@field dtype string
---@field shape integer[]
---@field data any  FFI pointer to the elements

---Over finite elements; nil for what is unknown or has no value.
---@class msdbg.Stats
---@field count integer
---@field min number?
---@field max number?
---@field mean number?
---@field abs_mean number?
---@field std number?
---@field l2_norm number?
---@field nan_count integer
---@field pos_inf_count integer
---@field neg_inf_count integer
---@field zero_count integer
---@field pos_count integer
---@field neg_count integer
---@field zero_percentage number?
---@field first_bad integer[]?  coordinates of the first NaN or Inf
---@field dtype_max_count integer

---@class msdbg.Watch
---@field id integer
---@field name string?
---@field on string
---@field when string|function
---@field slots string
---@field enabled boolean
---@field rule string
---@field params table<string, number>
---@field nodes integer  that the selector matches
local watch = {}

---Changes what the table names; an error leaves everything as it was.
---@param options table  the keys of session:watch
---@return msdbg.Watch
function watch:set(options) end
---@return msdbg.Watch
function watch:enable() end
---@return msdbg.Watch
function watch:disable() end
function watch:remove() end

---@class msdbg.Context
---@field step integer
---@field rank integer
---@field watch msdbg.Watch
---@field session msdbg.Session

---@class msdbg.Result
---@field hits msdbg.Hit[]
---@field not_checked table[]  watch, rule, abbr, rank, graph, step, node, slot, reason, error_code, errors
---@field coverage { tensors: integer, checked: integer, not_checked: integer, bytes: integer, from_cache: integer }
---@field total_hits integer  more than #hits with max_hits
---@field interrupted boolean
---@field steps integer[]
---@field semantics string

---What a command of a live session came back with.
---@class msdbg.RunResult
---@field state "held"|"running"|"ended"|"lost"
---@field reason "done"|"hit"|"node not met"|"paused"|"interrupted"|"ended"|"lost"|"not checked"
---@field step integer  as the training counts it
---@field completed_steps integer
---@field steps_run integer  by this command
---@field node string?  that ran last
---@field held boolean
---@field hits msdbg.Hit[]
---@field not_checked table[]
---@field check msdbg.Result  hits and not_checked as a check result, for msdbg.report

---@class msdbg.Hit
---@field watch integer
---@field watch_name string?
---@field rule string
---@field abbr string
---@field severity "error"|"warning"|"info"
---@field rank integer
---@field graph string
---@field graph_id integer
---@field step integer
---@field execution integer
---@field node string
---@field op string
---@field slot string
---@field dtype string
---@field shape integer[]
---@field params { name: string, threshold: number, actual: number?, hit: boolean }[]
---@field details table<string, string>  what a function returned besides `actual`
---@field error_code integer
---@field errors string[]
---@field stats msdbg.Stats
---@field stack table[]
---@field advice string?

---@class msdbg.Origins
---@field origins table[]  kind, step, node, slot, stats, first, bad_count, certain, inputs, chains, reached, stack
---@field steps table[]  rank, graph_id, step, bad_tensors, origins, losses
---@field predicate string
---@field not_checked_count integer

---@class msdbg.Report
local report = {}

---@return string
function report:table() end
---@return string
function report:json() end
---Of a check: one hit a line, at the end one line {"summary": {...}}. Of an origin: one origin a line.
---@return string
function report:jsonl() end
---Of a check only, as the following: RFC 4180, a hit or what was not checked a line.
---@return string
function report:csv() end
---XML as CI servers read it, a suite per rule.
---@return string
function report:junit() end
---SARIF 2.1.0 for code scanning.
---@return string
function report:sarif() end

return msdbg
