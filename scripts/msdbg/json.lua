-- JSON as written by msdbg: exact numbers, NaN and infinities as strings (docs/json.md), keys sorted.
--
--   local json = require "msdbg.json"
--   json.encode({ worst = t:worst(3), ok = true }, { indent = 2 })
--   json.decode('{"steps": [0, 1], "limit": null}').limit == json.null
local core = require "msdbg.core"
local options = require "msdbg.options"

local assert, io, load, type = assert, io, load, type

local M = {}

--- The decoded form of `null`: a table cannot hold nil.
M.null = core.json_null

-- 64-bit integers that a double cannot represent; the digits come from the parser and end in LL or ULL.
local function wide(digits)
  -- -9223372036854775808LL parses as a minus sign and a number that is too large.
  if digits == "-9223372036854775808LL" then digits = "-9223372036854775807LL - 1" end
  return assert(load("return " .. digits))()
end

--- A value as JSON text. A table is an array if its keys are exactly 1..n, otherwise an object with string keys; an empty table is
--- an object unless json.array() marked it.
---@param value any
---@param given? { indent?: integer }
---@return string
function M.encode(value, given)
  local o = options.check("json.encode", given, { indent = "number" })
  return core.json_encode(value, options.integer("json.encode", o, "indent", 0, 16))
end

--- The value of a JSON text. Integers beyond 2^53 become int64_t or uint64_t of the FFI; `special` converts the strings "NaN",
--- "Infinity" and "-Infinity" to numbers. Raises with line and column.
---@param text string
---@param given? { special?: boolean }
---@return any
function M.decode(text, given)
  local o = options.check("json.decode", given, { special = "boolean" })
  return core.json_decode(text, wide, o.special or false)
end

--- The values of JSON lines; skips empty lines.
---@param text string
---@param given? { special?: boolean }
---@return any[]
function M.decode_lines(text, given)
  local values, number = {}, 0
  for line in (text .. "\n"):gmatch "(.-)\r?\n" do
    number = number + 1
    if line:find "%S" then
      local ok, value = pcall(M.decode, line, given)
      if not ok then
        local message = type(value) == "table" and value.message or tostring(value)
        core.raise("corrupt", (message:gsub("^json.decode: line 1", "json.decode_lines: line " .. number)), true)
      end
      values[#values + 1] = value
    end
  end
  return values
end

--- Marks a table as an array; needed for an empty one.
---@param list any[]
---@return any[]
function M.array(list) return core.json_array(list) end

--- True for arrays of json.decode and json.array.
---@param value any
---@return boolean
function M.is_array(value) return core.json_is_array(value) end

--- The value in a file.
---@param path string
---@param given? { special?: boolean }
---@return any
function M.read(path, given)
  local file, why = io.open(path, "rb")
  if not file then core.raise("io_error", "json.read: " .. why, true) end
  local text = file:read "*a"
  file:close()
  if not text then core.raise("io_error", "json.read: " .. path .. ": cannot be read", true) end
  return M.decode(text, given)
end

return M
