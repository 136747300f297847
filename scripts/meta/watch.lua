---@meta
-- Stubs of watchpoints and check results.

---A watchpoint, made by s:watch. `print` shows it in one line.
---@class msdbg.Watch
---@field id integer
---@field name string?
---@field on string  the selector
---@field when string|function
---@field slots string  "output", "input", "all" or one slot
---@field enabled boolean
---@field rule string  id of the condition or name of the rule
---@field params table<string, number>
---@field nodes integer  number of nodes that the selector matches
---@field once boolean  removed after its first hit
---@field ignores integer  the number of hits that it still ignores
---@field from_step integer  hits in earlier steps do not stop the training
---@field commands string[]  entries that the prompt runs when it hits
local watch = {}

---Changes the given fields; if there is an error, nothing changes.
---e.g. s:watches()[1]:set { zero_percentage_ge = 80 }
---@param options msdbg.WatchOptions  all fields are optional
---@return msdbg.Watch
function watch:set(options) end
---Enables the watchpoint again.
---@return msdbg.Watch
function watch:enable() end
---Keeps the watchpoint, but does not run it.
---@return msdbg.Watch
function watch:disable() end
---Live: the next `count` hits do not stop the training. All tensors that hit in one place count as one hit.
---e.g. s:watches()[1]:ignore(10)
---@param count integer
---@return msdbg.Watch
function watch:ignore(count) end
---Removes the watchpoint; later use raises an error.
function watch:remove() end

---The second argument of a condition function.
---@class msdbg.Context
---@field step integer
---@field rank integer
---@field watch msdbg.Watch
---@field session msdbg.Session

---The result of a check. `print` shows the table of `msdbg check`.
---@class msdbg.Result
---@field hits msdbg.Hit[]
---@field not_checked table[]  watch, rule, abbr, rank, graph, graph_id, step, execution, node, op, slot, reason, error_code, errors
---@field by_rank table[]  rank, steps, hits, not_checked (one for each of these steps), missing_steps; empty with one rank
---@field coverage { tensors: integer, checked: integer, not_checked: integer, bytes: integer, from_cache: integer }
---@field total_hits integer  larger than #hits if max_hits cut the list
---@field causes msdbg.Cause[]?  what the hits follow from, the earliest first; nil for a checkpoint, and for a training that has gone on
---@field explained table[]  findings that are no faults, and no hits: their place, rule, severity, message, reason, evidence, from
---@field overflows table[]  kernels that the hardware flagged, in execution order: their place, task, stream, unit
---@field interrupted boolean  true: not every tensor was checked
---@field dump string  its source
---@field rules table[]  rules with findings: name, severity, summary, cause, next, file
---@field steps integer[]  that were checked
---@field semantics "compat"|"finite"

---What findings follow from: a plain table.
---@class msdbg.Cause
---@field kind string  "log_of_zero", "division_by_zero", "cast_overflow", "bad_input", "rate_too_large", "dead_units", ..., "unknown"
---@field sentence string  "Div-op0, step 0, hold.py:44: division by 0"
---@field evidence string?  "104 zeros in input:0"
---@field rank integer
---@field graph string
---@field graph_id integer
---@field step integer  the first one
---@field steps integer[]
---@field execution integer
---@field node string
---@field op string
---@field slot string
---@field findings integer  that follow from it, its own included
---@field total integer  findings of the check
---@field source { file: string, line: integer? }?
---@field stack table[]

---One finding: a plain table.
---@class msdbg.Hit
---@field watch integer  its id
---@field watch_name string?
---@field rule string  id of the condition or name of the rule
---@field abbr string  "" without one
---@field severity "error"|"warning"|"info"
---@field rank integer
---@field graph string
---@field graph_id integer
---@field step integer
---@field execution integer
---@field node string  full name
---@field op string
---@field slot string
---@field gradient_of string?  the parameter whose optimizer takes this tensor as gradient
---@field dtype string
---@field shape integer[]
---@field message string  why it hit, in one line
---@field actual number?  the value that decided
---@field params { name: string, threshold: number, actual: number?, hit: boolean }[]
---@field details table<string, string|number>  fields that a function returned
---@field stats msdbg.Stats
---@field source { file: string, line: integer? }?  the line of your program
---@field stack table[]  file, line, code; innermost first
---@field not_finite string?  which elements are NaN or infinite: "104 of 192 -Inf"
---@field summary string?  of the rule; nil for conditions
---@field advice string?  what to do next
---@field follows integer?  the index of its cause in the result's `causes`
