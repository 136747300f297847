-- What `msdbg guide` does around the talk: opens the dump, prints, writes the report.
local guide = require "msdbg.guide"
local json = require "msdbg.json"
local msdbg = require "msdbg"

local io, print = io, print

local M = {}

local function plain(result, dump)
  return {
    dump = dump, findings = result.findings, unknowns = result.unknowns, steps = json.array(result.steps),
    entries = json.array(result.entries), verdict = guide.verdict(result),
  }
end

--- The exit status: 1 when anything was found.
---@param options { dump: string, ask: boolean, format: "table"|"json" }
---@return integer
function M.main(options)
  local s = msdbg.open(options.dump)
  local quiet = options.format == "json"
  local say = quiet and function() end or print
  local result = guide.run(s, { say = say, read = options.ask and io.read or nil })
  if quiet then print(json.encode(plain(result, options.dump), { indent = 2 })) end
  return result.findings > 0 and 1 or 0
end

return M
