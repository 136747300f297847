---@meta
-- The guide as a module: `require "msdbg.guide"`.

---@class msdbg.guide
local guide = {}

---@class msdbg.GuideOptions
---@field read? fun(): string?  returns a line of answer; nil leaves the question open
---@field say? fun(line: string)  receives each line of output; without it there is no output
---@field answers? table<string, boolean>  by key: "processing", "mode", "loss scale"
---@field steps? integer  the largest number of steps to look at, default 8
---@field origin? msdbg.Origins  if already computed

---The result of the guide: the keys of `msdbg guide --format json`, and the origin.
---@class msdbg.GuideResult
---@field dump string  its source
---@field verdict string  how many findings, and where to begin
---@field entries table[]  chapter, kind ("finding", "fine", "unknown", "note"), text, next, command, step
---@field findings integer  number of findings
---@field unknowns integer  number of open questions
---@field steps integer[]  that were checked
---@field origin msdbg.Origins

---Walks through data, hyper-parameters, use of the API, graph, weights and precision; asks only what the dump cannot answer.
---e.g. print(guide.run(s, { answers = { mode = true } }).verdict)
---@param s msdbg.Session
---@param options? msdbg.GuideOptions
---@return msdbg.GuideResult
function guide.run(s, options) end

return guide
