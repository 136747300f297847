---@meta
-- The guide as a module: `require "msdbg.guide"`.

---@class msdbg.guide
local guide = {}

---Walks through data, hyper-parameters, use of the API, graph, weights and precision; asks only what the dump cannot answer.
---@param s msdbg.Session
---@param options? { read?: fun(): string?, say?: fun(line: string), answers?: table<string, boolean>, steps?: integer }  `read` gives an answer line, `answers` are by key ("processing", "mode", "loss scale"), `steps` at most that many are looked at (8)
---@return { entries: { chapter: string, kind: "finding"|"fine"|"unknown"|"note", text: string, next: string?, command: string?, step: integer? }[], findings: integer, unknowns: integer, steps: integer[], origin: msdbg.Origins }
function guide.run(s, options) end

---One or two sentences: how many findings, and where to begin.
---@param result table  of run()
---@return string
function guide.verdict(result) end

return guide
