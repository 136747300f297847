---@meta
-- Stubs of what drives a training. On a dump these raise; s.can tells. docs/live.md is the page for people.

---@class msdbg.Session
local session = {}

---@class msdbg.TimeoutOptions
---@field timeout? number  seconds

---@class msdbg.StepOptions
---@field n? integer  steps, default 1
---@field node? string|msdbg.Node  at most until this has run
---@field timeout? number  seconds; then the training is held wherever it is

---Live: runs steps.
---e.g. local r = s:step(10)
---@param n? integer|msdbg.StepOptions  default 1
---@return msdbg.RunResult
function session:step(n) end

---@class msdbg.ContinueOptions
---@field steps? integer  at most so many
---@field timeout? number  seconds; then the training is held wherever it is

---Live: runs until a hit, the end, or Ctrl-C; at most so many steps or seconds.
---e.g. local r = s:continue { timeout = 3600 }  if r.reason == "hit" then print(r.hits[1].node) end
---@param options? msdbg.ContinueOptions
---@return msdbg.RunResult
function session:continue(options) end
---Live: runs the next operator. On backends that cannot stop there it raises; s.can.next_node tells.
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:next_node(options) end
---Live: runs until a node has run, at most to the end of the step; then the reason is "node not met".
---e.g. s:run_to "Log-op0"
---@param node string|msdbg.Node
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:run_to(node, options) end
---Live: waits for the next suspension, 30 seconds unless `timeout` says otherwise.
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:pause(options) end
---Live: ends the training; waits 60 seconds for it unless `timeout` says otherwise.
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:terminate(options) end
---Live: removes the watchpoints and lets the training run to its end; it is answered as long as msdbg runs.
function session:detach() end
---Live: until the training is held, or after detach() over; the state. nil, message, code when the time was not enough.
---@param options? msdbg.TimeoutOptions
---@return string? state
---@return string? message
---@return string? code
function session:wait(options) end
---Live: calls `fn` for each hit (hit, result), at the end of each step (step; false stops there), or at the end of the training
---(result). false forgets the functions of that event. They may read tensors and edit watchpoints, not run, check or close.
---e.g. s:on("hit", function(hit) print(hit.step, hit.node) end)
---@param event "hit"|"step"|"end"
---@param fn function|false
function session:on(event, fn) end

---What a command of a live session came back with. Printed, it is a line or a few.
---@class msdbg.RunResult
---@field state "held"|"running"|"ended"|"lost"
---@field reason "done"|"hit"|"node not met"|"paused"|"interrupted"|"ended"|"lost"|"not checked"
---@field step integer  as the training counts it
---@field completed_steps integer  since the training began
---@field steps_run integer  by this command
---@field node string?  that ran last
---@field held boolean  the training waits for the next command
---@field hits msdbg.Hit[]  with state "ended": of a last step that no suspension follows (GPU 1.3 to 1.5)
---@field not_checked table[]  as of msdbg.Result
---@field check msdbg.Result  hits and not_checked as a check result, for msdbg.report
