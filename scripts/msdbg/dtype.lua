-- Facts about element types: their ranges, and where they start to lose precision.
--
--   local dtype = require "msdbg.dtype"
--   dtype.of "float16".max      -- 65504
local core = require "msdbg.core"

local format = string.format
local setmetatable, tostring, type = setmetatable, tostring, type

local M = {}

M.names = { "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64" }

local class = {
  __tostring = function(facts)
    if not facts.is_float then return format("<dtype %s %d bits, up to %s>", facts.name, facts.bits, core.exact_number(facts.max)) end
    return format("<dtype %s %d bits, max %s, smallest normal %s, eps %s>", facts.name, facts.bits, core.short_number(facts.max, 6),
      core.short_number(facts.min_normal, 6), core.short_number(facts.eps, 6))
  end,
}

-- The range of an integer type, rounded to double. The core has no min for it, because its bounds are magnitudes.
local function complete(facts)
  if facts.is_float then
    facts.min = -facts.max
    facts.min_subnormal = facts.min_normal * facts.eps
    facts.digits = 1 - math.log(facts.eps) / math.log(2)
    facts.digits = math.floor(facts.digits + 0.5)
  else
    local signed = facts.name:sub(1, 3) == "int"
    facts.max = facts.name == "bool" and 1 or 2 ^ (facts.bits - (signed and 1 or 0)) - 1
    facts.min = signed and -2 ^ (facts.bits - 1) or 0
  end
  return setmetatable(facts, class)
end

local known = {}

--- Facts about a type, by a name in any common spelling, or about a tensor's type: name, bits, is_float, max, min; for floats also
--- min_normal, min_subnormal, eps, digits (bits of the significand).
---@param what string|msdbg.Tensor
---@return msdbg.DTypeFacts
function M.of(what)
  local name = what
  if core.class_of(what) == "tensor" then name = what.dtype end
  if type(name) ~= "string" then core.raise("invalid_argument", "dtype.of: a name or a tensor is expected, not a " .. type(name)) end
  if not known[name] then
    local facts = core.dtype_facts(name)
    if not facts then
      local close = core.nearest(name, M.names, 1)[1]
      core.raise("invalid_argument", format("dtype.of: '%s' is not a numeric type%s", name,
        close and format(" (did you mean '%s'?)", close) or "; there is " .. table.concat(M.names, ", ")))
    end
    known[name] = complete(facts)
  end
  return known[name]
end

--- The position of a magnitude in the range of a float type: "zero", "subnormal", "normal", "overflow" or "not a number".
---@param value number
---@param what string|msdbg.Tensor
---@return string
function M.place(value, what)
  local facts = M.of(what)
  if type(value) ~= "number" then core.raise("invalid_argument", "dtype.place: a number is expected, not " .. tostring(value)) end
  if value ~= value then return "not a number" end
  local magnitude = math.abs(value)
  if value > facts.max or value < facts.min then return "overflow" end
  if magnitude == 0 then return "zero" end
  if facts.is_float and magnitude < facts.min_normal then return "subnormal" end
  return "normal"
end

return M
