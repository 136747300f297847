-- Options of a call: one table of named fields. Unknown fields raise with the nearest known name, wrong types with the expected
-- one.
local core = require "msdbg.core"

local format = string.format
local ipairs, pairs, tostring, type = ipairs, pairs, tostring, type

local M = {}

local function with_article(kind) return (kind:match "^[aeiou]" and "an " or "a ") .. kind end

-- A number would index a C array beyond its end.
local function require_table(call, given)
  if type(given) == "table" then return end
  core.raise("invalid_argument", format("%s: options are a table, not %s", tostring(call), with_article(type(given))))
end

--- Checks the fields of `given` against `known`: name = type name, or a list of allowed words.
---@param call string  used in messages
---@param given table?
---@param known table<string, string|string[]>
---@return table  the options; empty if there are none
function M.check(call, given, known)
  if given == nil then return {} end
  require_table(call, given)
  for name, value in pairs(given) do
    local wanted = known[name]
    if not wanted then
      local names = {}
      for each in pairs(known) do names[#names + 1] = each end
      table.sort(names)
      local close = core.nearest(tostring(name), names, 1)[1]
      core.raise("invalid_argument", format("%s: unknown option '%s'%s", call, tostring(name),
        close and format(" (did you mean '%s'?)", close) or "; there is " .. table.concat(names, ", ")))
    end
    if type(wanted) == "table" then
      local found = false
      for _, word in ipairs(wanted) do found = found or word == value end
      if not found then
        local known_values = table.concat(wanted, ", ")
        core.raise("invalid_argument", format("%s: option '%s' is one of %s, not %s", call, name, known_values, tostring(value)))
      end
    elseif wanted ~= "any" and type(value) ~= wanted then
      core.raise("invalid_argument", format("%s: option '%s' is %s, not %s", call, name, with_article(wanted), with_article(type(value))))
    end
  end
  return given
end

--- An integer within bounds, or `default` if missing.
---@param call string
---@param options table
---@param name string
---@param least integer
---@param most integer
---@param default integer?
---@return integer?
function M.integer(call, options, name, least, most, default)
  require_table(call, options)
  local value = options[name]
  if value == nil then return default end
  if type(value) ~= "number" or value % 1 ~= 0 or value < least or value > most then
    core.raise("invalid_argument",
      format("%s: option '%s' is a whole number from %d to %d, not %s", call, name, least, most, tostring(value)))
  end
  return value
end

return M
