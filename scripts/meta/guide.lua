---@meta
-- The guide as a module: `require "msdbg.guide"`.

---@class msdbg.guide
local guide = {}

---@class msdbg.GuideOptions
---@field read? fun(): string?  gives an answer line; nil leaves the question open
---@field say? fun(line: string)  takes each line; without it nothing is said
---@field answers? table<string, boolean>  by key: "processing", "mode", "loss scale"
---@field steps? integer  at most so many are looked at, default 8
---@field origin? msdbg.Origins  looked up already

---What the talk came to.
---@class msdbg.GuideResult
---@field entries table[]  chapter, kind ("finding", "fine", "unknown", "note"), text, next, command, step
---@field findings integer  how many
---@field unknowns integer  questions that stay open
---@field steps integer[]  that were looked at
---@field origin msdbg.Origins

---Walks through data, hyper-parameters, use of the API, graph, weights and precision; asks only what the dump cannot answer.
---e.g. print(guide.verdict(guide.run(s, { answers = { mode = true } })))
---@param s msdbg.Session
---@param options? msdbg.GuideOptions
---@return msdbg.GuideResult
function guide.run(s, options) end

---One or two sentences: how many findings, and where to begin.
---@param result msdbg.GuideResult
---@return string
function guide.verdict(result) end

return guide
