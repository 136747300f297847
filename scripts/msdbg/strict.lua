-- Environments for scripts: they read the globals, and raise on undefined names and on global assignment. This separates scripts
-- from each other's mistakes; it is no defence against hostile code.
local core = require "msdbg.core"

local globals = _G
local pairs, select, setmetatable, table, tostring, type = pairs, select, setmetatable, table, tostring, type

local M = { globals = globals }

local function names_of(...)
  local names = {}
  for _, space in pairs { ... } do
    for name in pairs(space) do
      if type(name) == "string" then names[#names + 1] = name end
    end
  end
  return names
end

local function undefined(name, own)
  local text = ("undefined name '%s'"):format(tostring(name))
  local close = core.nearest(tostring(name), names_of(globals, own), 1)
  if close[1] then text = ("%s (did you mean '%s'?)"):format(text, close[1]) end
  core.raise("undefined", text)
end

-- print for a terminal: control characters are made visible, colours pass if enabled. A file or a pipe gets the text unchanged,
-- and io.write writes what it is given.
local function visible_print(...)
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = tostring((select(i, ...))) end
  globals.print(core.visible(table.concat(parts, "\t")))
end

--- An environment for one script.
---@return table
function M.environment()
  local env = {}
  env._G = env
  return setmetatable(env, {
    __index = function(own, name)
      if name == "print" and core.terminal().output_tty then return visible_print end
      local value = globals[name]
      if value == nil then undefined(name, own) end
      return value
    end,
    __newindex = function(_, name)
      core.raise("global", ("assignment to global '%s': scripts have no globals, write 'local %s'"):format(tostring(name), tostring(name)))
    end,
  })
end

--- The environment of the prompt: assignments persist, undefined names still raise.
---@return table
function M.prompt_environment()
  local env = {}
  env._G = env
  return setmetatable(env, {
    __index = function(own, name)
      if name == "print" then return visible_print end
      local value = globals[name]
      if value == nil and name ~= "_" and not tostring(name):match "^_%d$" then undefined(name, own) end
      return value
    end,
  })
end

return M
