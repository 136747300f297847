-- The msdbg library: `local msdbg = require "msdbg"`. Reference: docs/lua.md.
local core = require "msdbg.core"

-- Library and program must match in all functions of msdbg.core, their arguments and results.
local VERSION = "0.1.0"
local remedy = core.development
  and ("unset MSDBG_DEV_SCRIPTS, or point it at the scripts of this program (now: %s)"):format(core.development) or "rebuild the program"
if core.version ~= VERSION then
  core.raise("version", ("the Lua library is that of msdbg %s, the program is msdbg %s; %s"):format(VERSION, core.version, remedy), true)
end
-- The version does not change between releases; a missing function reveals a mismatch.
setmetatable(core, { __index = function(_, name)
  core.raise("version", ("msdbg.core of this program has no '%s', which its Lua library asks for; %s"):format(tostring(name), remedy), true)
end })
require "msdbg.printed_results"
require "msdbg.session"
require "msdbg.rule_session"
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
M.rules = require "msdbg.rule_library"  -- reads rule files on first use
M.diff = core.diff
for name, call in pairs(require "msdbg.follow") do M[name] = call end
M.repro = require("msdbg.repro").repro
M.series = require "msdbg.series"

--- Ends the script with a user error: shows the message without a traceback.
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
