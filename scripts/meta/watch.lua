---@meta
-- Stubs of watchpoints and of what a check finds.

---A watchpoint; s:watch makes it. Printed, it is a line.
---@class msdbg.Watch
---@field id integer
---@field name string?
---@field on string  the selector
---@field when string|function
---@field slots string  "output", "input", "all" or one slot
---@field enabled boolean
---@field rule string  id of the condition or name of the rule
---@field params table<string, number>
---@field nodes integer  that the selector matches
local watch = {}

---Changes what the table names; an error leaves everything as it was.
---e.g. s:watches()[1]:set { zero_percentage_ge = 80 }
---@param options msdbg.WatchOptions  all of them may be left out
---@return msdbg.Watch
function watch:set(options) end
---It is asked again.
---@return msdbg.Watch
function watch:enable() end
---It is kept, but not asked.
---@return msdbg.Watch
function watch:disable() end
---It is gone; later use raises.
function watch:remove() end

---What a function that is a condition gets besides the tensor.
---@class msdbg.Context
---@field step integer
---@field rank integer
---@field watch msdbg.Watch
---@field session msdbg.Session

---What a check found. Printed, it is the table of `msdbg check`.
---@class msdbg.Result
---@field hits msdbg.Hit[]
---@field not_checked table[]  watch, rule, abbr, rank, graph, step, node, slot, reason, error_code, errors
---@field coverage { tensors: integer, checked: integer, not_checked: integer, bytes: integer, from_cache: integer }
---@field total_hits integer  more than #hits with max_hits
---@field interrupted boolean  what is here is partial
---@field steps integer[]  that were looked at
---@field semantics "compat"|"finite"

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
---@field dtype string
---@field shape integer[]
---@field params { name: string, threshold: number, actual: number?, hit: boolean }[]
---@field details table<string, string>  what a function returned besides `actual`
---@field error_code integer  0: none
---@field errors string[]
---@field stats msdbg.Stats
---@field stack table[]  the user's program, innermost first
---@field not_finite string?  which elements are NaN or infinite: "104 of 192 -Inf"
---@field summary string?  of the rule; nil for conditions
---@field advice string?  what to do next
