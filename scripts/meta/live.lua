---@meta
-- Stubs of the methods that drive a training. On a dump they raise an error; see s.can. User documentation: docs/live.md.

---@class msdbg.Session
local session = {}

---@class msdbg.TimeoutOptions
---@field timeout? number  seconds

---@class msdbg.StepOptions
---@field n? integer  steps, default 1
---@field node? string|msdbg.Node  run at most until this node has run
---@field timeout? number  seconds; then the training is held where it is

---Live: runs steps.
---e.g. local r = s:step(10)
---@param n? integer|msdbg.StepOptions  default 1
---@return msdbg.RunResult
function session:step(n) end

---@class msdbg.ContinueOptions
---@field steps? integer  the largest number of steps to run
---@field timeout? number  seconds; then the training is held where it is

---Live: runs until a hit, the end, or Ctrl-C, within the given steps or seconds.
---e.g. local r = s:continue { timeout = 3600 }  if r.reason == "hit" then print(r.hits[1].node) end
---@param options? msdbg.ContinueOptions
---@return msdbg.RunResult
function session:continue(options) end
---Live: runs the next operator. Raises an error on backends that cannot stop there; see s.can.next_node.
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:next_node(options) end
---Live: runs until a node has run. If the step ends first, the reason is "node not met".
---e.g. s:run_to "Log-op0"
---@param node string|msdbg.Node
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:run_to(node, options) end
---Live: runs to the end of the current step. Raises an error if no step is running.
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:finish(options) end
---Live: waits for the next suspension, by default for 30 seconds.
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:pause(options) end
---Live: ends the training and waits for its end, by default for 60 seconds.
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:terminate(options) end
---Live: lets the training run on without watchpoints; msdbg answers it as long as msdbg runs. attach() undoes it.
function session:detach() end
---Live: undoes detach(): waits until the training is held again, by default for 30 seconds. The watchpoints are set again.
---@param options? msdbg.TimeoutOptions
---@return msdbg.RunResult
function session:attach(options) end
---Live: makes a GPU training keep the values of these nodes in the following steps, without a condition. Returns how many nodes it did
---not keep before. Other trainings keep everything.
---@param on msdbg.Selector
---@return integer
function session:keep_readable(on) end
---Live: waits until the training is held, or after detach() until it ends; returns the state, or nil, message, code after `timeout`.
---@param options? msdbg.TimeoutOptions
---@return string? state
---@return string? message
---@return string? code
function session:wait(options) end
---Live: calls `fn` for each hit (hit, result), at the end of each step (step; returning false stops), or at the end of the training
---(result). false removes the callbacks of that event. They can read tensors and edit watchpoints, but cannot run, check or close.
---e.g. s:on("hit", function(hit) print(hit.step, hit.node) end)
---@param event "hit"|"step"|"end"
---@param fn function|false
function session:on(event, fn) end

---The result of a command in a live session. `print` shows it in a few lines.
---@class msdbg.RunResult
---@field state "held"|"running"|"ended"|"lost"
---@field reason "done"|"hit"|"node not met"|"paused"|"interrupted"|"ended"|"lost"|"not checked"|"cut short"
---@field step integer  in the training's own count
---@field completed_steps integer  since the start of the training
---@field steps_run integer  by this command
---@field node string?  the node that ran last
---@field at_begin boolean  held before the first operator of the step: a parameter is bad that the last step left good
---@field held boolean  the training waits for the next command
---@field hits msdbg.Hit[]  with state "ended": hits of the last step, after which there is no suspension (GPU 1.3 to 1.5)
---@field not_checked table[]  as of msdbg.Result
---@field check msdbg.Result  hits and not_checked as a check result, for msdbg.report
