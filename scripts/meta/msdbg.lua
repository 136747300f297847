---@meta
-- Stubs of the msdbg library for editors (LuaLS). Written by hand; a test compares them with the bindings. `help` at the prompt and
-- docs/reference.md are made of them. A class whose name ends in Options names the fields of an options table; `---e.g.` is an example.

---The library: `require "msdbg"`. Misuse raises an error that names the argument, its value and the closest known name.
---@class msdbg
---@field version string  of this program
local msdbg = {}

---@class msdbg.OpenOptions
---@field rank? msdbg.Numbers  read these ranks only; default all
---@field net? string  which network, if the dump holds several
---@field index? boolean  false: neither use nor write the index of a dump; default true, unless the program runs with --no-index
---@field mem_limit? number  MB of tensors that may be in memory at once
---@field semantics? "compat"|"finite"  how conditions treat NaN and Inf: like MindInsight, or using the finite elements only
---@field threads? integer  default: the number of cores

---Opens a dump directory, a checkpoint, or a recording of a live session. Raises an error if there is
---nothing readable, and says what it looked for.
---e.g. local s = msdbg.open("/data/dump", { rank = "0:3" })
---@param path string
---@param options? msdbg.OpenOptions
---@return msdbg.Session
function msdbg.open(path, options) end

---@class msdbg.ListenOptions
---@field port? integer  the port that the training connects to, default 50051; 0 means any free port, see s.address
---@field ranks? integer  number of processes of the training, default 1: all are held and stepped together, as one session with ranks
---@field bind? string  address to listen on, default "127.0.0.1"; anyone who can reach it can pose as the training
---@field record? string  a file for the whole conversation; msdbg.open plays it back
---@field wait? number|false  seconds to wait for a training, default forever; false returns at once, then call s:wait()
---@field answer_timeout? number  seconds to wait for a held training's answer when asking for a tensor, default 30
---@field history? integer  number of steps whose statistics are kept, default 16; 0: keep no history
---@field graph_from? string  a recording with the graph of a training that reconnects without it
---@field mem_limit? number  MB of tensors that may be in memory at once
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores

---Waits until a training process has connected and is held. Returns nil, message, code if nothing connected within `wait` seconds.
---e.g. local s = assert(msdbg.listen { port = 0, wait = 60 })
---@param options? msdbg.ListenOptions
---@return msdbg.Session? session
---@return string? message
---@return string? code  "not_found"
function msdbg.listen(options) end

---@class msdbg.OriginOptions
---@field when? string|fun(t: msdbg.Tensor): any  what is bad: "nan or inf" (default), "nan", "inf", a condition, an expression, a function
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default the current one, else all
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: the number of cores
---@field mem_limit? number  MB

---For each step, the first output that is bad while the inputs of its operator are good.
---e.g. print(msdbg.origin(s, { when = "inf", steps = "0:10" }))
---@param session msdbg.Session
---@param options? msdbg.OriginOptions
---@return msdbg.Origins
function msdbg.origin(session, options) end

---The cost of an expression: passes over the tensor, parts that the statistics provide, operations per element. Errors point at the
---mistake with a caret.
---e.g. print(msdbg.explain "percent(abs(x) > 3*std(x)) > 5")
---@param expression string
---@return string
function msdbg.explain(expression) end

---A result as text for people or programs.
---e.g. msdbg.report(s, s:check()):html "findings.html"
---@param session msdbg.Session
---@param result msdbg.Result|msdbg.Origins
---@return msdbg.Report
function msdbg.report(session, result) end

---Ends the script because of a user error: shows the message without a traceback. `error` is for bugs and shows one.
---e.g. msdbg.fail "usage: msdbg run hunt.lua DUMP"
---@param message string
function msdbg.fail(message) end

---@alias msdbg.Numbers integer|string|integer[]  3, "0:10" (both ends), "2:", "all", { 0, 4 }
---@alias msdbg.Selector string|msdbg.Node|msdbg.NodeSet|(string|msdbg.Node)[]  a list means any of them; docs/selectors.md

---The result of msdbg.origin. `print` shows the text of `msdbg origin`.
---@class msdbg.Origins
---@field origins table[]  all of them, the first of a step before its others; fields: docs/json.md
---@field steps table[]  rank, ranks, graph, graph_id, graphs_behind, step, bad_tensors, origin_count, losses
---@field predicate string  what counted as bad
---@field interrupted boolean  not everything was checked
---@field coverage { tensors: integer, checked: integer, not_checked: integer, bytes: integer, from_cache: integer }
---@field put_in table[]  places of infinities that the program put in, which are no fault: argument, tensors
---@field overflows table[]  kernels that the hardware flagged, in execution order: their place, task, stream, unit
---@field overwritten table[]  places of values that were overwritten between two calls: before, message, reason
---@field not_checked table[]  tensors that could not be judged, with a reason
---@field unfinished table[]  where ranks stopped in their last step: rank, graph, graph_id, step, node, ran, operators, source
---@field dump string  its source

---A result as text. Formats: docs/json.md, docs/ci.md.
---@class msdbg.Report
local report = {}

---Text as the program prints it.
---@return string
function report:table() end
---One JSON object.
---@return string
function report:json() end
---JSON lines: one hit or origin per line, then a line {"summary": {...}}.
---@return string
function report:jsonl() end
---CSV (RFC 4180), one hit or unchecked tensor per line. For checks only, like junit() and sarif(); otherwise raises an error.
---@return string
function report:csv() end
---JUnit XML for CI servers, one suite per rule.
---@return string
function report:junit() end
---SARIF 2.1.0 for code scanning.
---@return string
function report:sarif() end

return msdbg
