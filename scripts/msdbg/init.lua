-- The msdbg library: `local msdbg = require "msdbg"`. Reference: docs/lua.md.
local core = require "msdbg.core"
require "msdbg.record"
require "msdbg.session"
require "msdbg.rules_session"
require "msdbg.tensor"
require "msdbg.diff"

local setmetatable, tostring, type = setmetatable, tostring, type

local M = {}

M.version = core.version
M.open = core.open
M.checkpoint = core.checkpoint
M.checkpoint_diff = core.checkpoint_diff
M.listen = core.listen
M.origin = core.origin
M.report = core.report
M.explain = core.explain
M.rule = require "msdbg.rule"
M.rules = require "msdbg.rules"  -- reads no rule file before one is asked for
M.diff = core.diff
for name, call in pairs(require "msdbg.follow") do M[name] = call end
M.series = require "msdbg.series"

--- Ends with a mistake of the user: the message is shown without a traceback.
---@param message string
function M.fail(message)
  core.raise("fail", type(message) == "string" and message or tostring(message), true)
end

return setmetatable(M, {
  __index = function(_, name)
    local names = {}
    for known in pairs(M) do names[#names + 1] = known end
    local close = core.nearest(tostring(name), names, 1)
    local hint = close[1] and (" (did you mean '%s'?)"):format(close[1]) or ""
    core.raise("invalid_argument", ("msdbg has no field '%s'%s"):format(tostring(name), hint))
  end,
})
