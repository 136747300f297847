---@meta
-- Stubs of the msdbg library for editors (LuaLS). Written by hand; a test compares them with the bindings. `help` at the prompt and
-- docs/reference.md are made of them. A class whose name ends in Options names the fields of an options table; `---e.g.` is an example.

---The library: `require "msdbg"`. Misuse raises an error that names the argument, its value and the nearest known name.
---@class msdbg
---@field version string  of this program
local msdbg = {}

---@class msdbg.OpenOptions
---@field rank? msdbg.Numbers  read these ranks only; default all
---@field net? string  which network, where a dump holds several
---@field mem_limit? number  MB of tensors that may be in memory at once
---@field semantics? "compat"|"finite"  how conditions treat NaN and Inf: as MindInsight does, or by the finite elements
---@field threads? integer  default: as many as there are cores

---Opens a dump directory, a checkpoint, or a recording of a live session. Raises when nothing readable is there, and says what was
---looked for.
---e.g. local s = msdbg.open("/data/dump", { rank = "0:3" })
---@param path string
---@param options? msdbg.OpenOptions
---@return msdbg.Session
function msdbg.open(path, options) end

---@class msdbg.ListenOptions
---@field port? integer  for the training to connect to, default 50051; 0 is any free one, see s.address
---@field bind? string  address to listen on, default "127.0.0.1"; whoever reaches it can drive the training
---@field record? string  a file for the whole conversation, which msdbg.open plays again
---@field wait? number|false  seconds to wait for a training, default without end; false returns at once, then s:wait()
---@field answer_timeout? number  seconds that a held training may be silent when it is asked for a tensor, default 30
---@field history? integer  steps whose statistics are kept, default 16
---@field mem_limit? number  MB of tensors that may be in memory at once
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: as many as there are cores

---Waits until a training process has connected and is held. nil, message, code when nobody came within `wait` seconds.
---e.g. local s = assert(msdbg.listen { port = 0, wait = 60 })
---@param options? msdbg.ListenOptions
---@return msdbg.Session? session
---@return string? message
---@return string? code  "not_found"
function msdbg.listen(options) end

---@class msdbg.OriginOptions
---@field when? string|fun(t: msdbg.Tensor): any  what is bad: "nan or inf" (default), "nan", "inf", a condition, an expression, a function
---@field steps? msdbg.Numbers  default all
---@field ranks? msdbg.Numbers  default all
---@field semantics? "compat"|"finite"  as of msdbg.open
---@field threads? integer  default: as many as there are cores
---@field mem_limit? number  MB

---For each step, the first output that is bad while the inputs of its operator are sound.
---e.g. print(msdbg.origin(s, { when = "inf", steps = "0:10" }))
---@param session msdbg.Session
---@param options? msdbg.OriginOptions
---@return msdbg.Origins
function msdbg.origin(session, options) end

---What an expression costs: passes over the tensor, what the statistics give, operations per element. Raises with a caret below a
---mistake.
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

---Ends with a mistake of the user: the message is shown without a traceback. `error` is for defects and shows one.
---e.g. msdbg.fail "usage: msdbg run hunt.lua DUMP"
---@param message string
function msdbg.fail(message) end

---@alias msdbg.Numbers integer|string|integer[]  3, "0:10" (both ends), "2:", "all", { 0, 4 }
---@alias msdbg.Selector string|msdbg.Node|msdbg.NodeSet|(string|msdbg.Node)[]  a list means any of them; docs/selectors.md

---What msdbg.origin found. Printed, it is the text of `msdbg origin`.
---@class msdbg.Origins
---@field origins table[]  kind, step, node, slot, stats, first, bad_count, certain, inputs, chains, reached, stack
---@field steps table[]  rank, graph_id, step, bad_tensors, origins, losses
---@field predicate string  what counted as bad
---@field not_checked_count integer  tensors that could not be looked at

---A result as text. Formats: docs/json.md, docs/ci.md.
---@class msdbg.Report
local report = {}

---For people, as the program prints it.
---@return string
function report:table() end
---One object.
---@return string
function report:json() end
---Of a check: one hit a line, at the end one line {"summary": {...}}. Of an origin: one origin a line.
---@return string
function report:jsonl() end
---RFC 4180, a hit or what was not checked a line. Of a check only, as junit() and sarif(); else it raises.
---@return string
function report:csv() end
---XML as CI servers read it, a suite per rule.
---@return string
function report:junit() end
---SARIF 2.1.0 for code scanning.
---@return string
function report:sarif() end

return msdbg
