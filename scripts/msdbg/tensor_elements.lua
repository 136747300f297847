-- Tensor elements for hot loops: FFI pointers into memory that the view keeps alive.
--
--   local v = t:view()
--   for i = 0, v.n - 1 do sum = sum + v[i] end      -- flat, 0-based, row-major, like C and NumPy
--
-- The collector does not follow pointers: each view holds the handle of its memory, and so does the pointer v.data.
--
-- LuaJIT uses NaN bits as type tags, and FFI loads do not change bits: a NaN with another payload would become a table or nil.
-- Every element therefore passes a check of its bits, or comes from the core, which returns a single NaN.
local core = require "msdbg.core"
local bit = require "bit"
local ffi = require "ffi"

local band = bit.band
local floor, format, rawget, setmetatable, tonumber, tostring, type =
  math.floor, string.format, rawget, setmetatable, tonumber, tostring, type

local M = {}

local ABI_VERSION = 1

ffi.cdef(core.abi_text)

--- Refuses a table of functions for another version: a wrong declaration would corrupt memory.
---@param address any  light userdata or a pointer
---@return any abi  pointer to struct msdbg_abi
function M.check_abi(address)
  if address ~= core.abi_table and not ffi.istype("struct msdbg_abi", address) then
    core.raise("invalid_argument", format("msdbg.tensor_elements: %s is not the table of the program's functions", tostring(address)))
  end
  local abi = ffi.cast("const struct msdbg_abi *", address)
  local size = ffi.sizeof "struct msdbg_abi"
  if abi.version ~= ABI_VERSION or abi.size ~= size then
    core.raise("abi", format("msdbg.tensor_elements: the program has ABI version %d of %d bytes, these scripts are for version %d of %d bytes; "
      .. "install scripts and program of one release", abi.version, abi.size, ABI_VERSION, size), true)
  end
  return abi
end

local abi = M.check_abi(core.abi_table)

local NAN = 0 / 0
local scratch = ffi.new "double[1]"

-- The only field of a view: its state, under a key that only this file knows.
local STATE = {}

-- Returned pointers, with the owner of each one's memory.
local owner_of = setmetatable({}, { __mode = "k" })

local function fail(text, ...) core.raise("invalid_argument", format(text, ...)) end

local function state_of(view, call)
  local state = type(view) == "table" and rawget(view, STATE)  -- ignores metatables of other objects
  if not state then fail("%s: a view is expected, not %s; call it as view:%s()", call, tostring(view), call) end
  return state
end

local methods = {}

local function field(state, name)
  if type(name) == "number" then
    if floor(name) ~= name then fail("view: index %s is not a whole number", tostring(name)) end
    fail("view: index %s is outside 0 to %d", tostring(name), state.n - 1)
  end
  if name == "n" or name == "dtype" or name == "shape" then return state[name] end
  if name == "data" then
    owner_of[state.data] = state.owner
    return state.data
  end
  return methods[name] or fail("a view has no field '%s'; it has n, dtype, shape, data, doubles, and v[i] from 0", tostring(name))
end

-- Functions that read one element, one for each representation in memory. They are separate, each with its own bounds check,
-- because another call between the loop and the element costs more than the element.
local function integer_at(view, i)
  local state = view[STATE]
  if type(i) == "number" and i >= 0 and i < state.n and floor(i) == i then return tonumber(state.data[i]) end
  return field(state, i)
end

local function float32_at(view, i)
  local state = view[STATE]
  if type(i) == "number" and i >= 0 and i < state.n and floor(i) == i then
    if band(state.words[i], 0x7fffffff) > 0x7f800000 then return NAN end
    return state.data[i]
  end
  return field(state, i)
end

local function float64_at(view, i)
  local state = view[STATE]
  if type(i) == "number" and i >= 0 and i < state.n and floor(i) == i then
    local high = band(state.words[2 * i + 1], 0x7fffffff)
    if high >= 0x7ff00000 and (high > 0x7ff00000 or state.words[2 * i] ~= 0) then return NAN end
    return state.data[i]
  end
  return field(state, i)
end

local function widened_at(view, i)
  local state = view[STATE]
  if type(i) == "number" and i >= 0 and i < state.n and floor(i) == i then
    abi.element(state.raw, i, scratch)
    return scratch[0]
  end
  return field(state, i)
end

local function class(at, pointer)
  return {
    pointer = pointer,
    meta = {
      __index = at,
      __newindex = function(_, key) fail("view: elements cannot be assigned (here: %s)", tostring(key)) end,
      __tostring = function(view) return format("<view %s %d elements>", view.dtype, view.n) end,
      __metatable = "view",
    },
  }
end

local classes = {
  bool = class(integer_at, "const uint8_t *"), float32 = class(float32_at, "const float *"), float64 = class(float64_at, "const double *"),
  float16 = class(widened_at, "const void *"), bfloat16 = class(widened_at, "const void *"),
}
for _, bits in ipairs { 8, 16, 32, 64 } do
  for _, sign in ipairs { "", "u" } do
    local name = format("%sint%d", sign, bits)
    classes[name] = class(integer_at, format("const %s_t *", name))
  end
end

--- Implements tensor:view().
---@param tensor msdbg.Tensor
---@return msdbg.View
function M.new(tensor)
  -- Uses the type of the actual bytes, however the tensor was described.
  local owner, address, dtype, shape = core.view_memory(tensor)
  local raw = ffi.cast("const msdbg_view *", address)
  local made = classes[dtype]
  return setmetatable({ [STATE] = {
    owner = owner, raw = raw, n = tonumber(raw.count), dtype = dtype, shape = shape,
    data = ffi.cast(made.pointer, raw.data), words = ffi.cast("const int32_t *", raw.data),
  } }, made.meta)
end

--- Elements `first` to `first + n - 1` widened to double, with a single NaN value; without arguments all elements.
---@param view msdbg.View
---@param first? integer
---@param n? integer
---@return any doubles  cdata double[n]
function M.doubles(view, first, n)
  local state = state_of(view, "doubles")
  if first == nil then first = 0 end
  if type(first) == "number" and n == nil then n = state.n - first end
  if type(first) ~= "number" or type(n) ~= "number" then fail("doubles: two whole numbers are expected: the first element and how many") end
  if not (first >= 0 and n >= 0 and first + n <= state.n) or floor(first) ~= first or floor(n) ~= n then
    fail("doubles: %s elements from %s on are not within 0 to %d", tostring(n), tostring(first), state.n - 1)
  end
  local out = ffi.new("double[?]", n)
  if abi.elements(state.raw, first, n, out) ~= 0 then core.raise("internal", "doubles: the elements cannot be read") end
  return out
end
methods.doubles = M.doubles

--- Statistics of a view in one pass: cdata msdbg_stats.
---@param view msdbg.View
---@return any stats
function M.statistics(view)
  local out = ffi.new "msdbg_stats"
  if abi.statistics(state_of(view, "statistics").raw, out) ~= 0 then
    core.raise("unsupported", "statistics: elements of this type have none", true)
  end
  return out
end

return M
