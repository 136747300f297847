-- Tensor elements for hot loops: FFI pointers into memory that the view keeps alive.
--
--   local v = t:view()
--   for i = 0, v.n - 1 do sum = sum + v[i] end      -- flat, 0-based, row-major, like C and NumPy
--
-- The collector does not follow pointers, so each view holds the handle of its memory in a field.
local core = require "msdbg.core"
local ffi = require "ffi"

local format, setmetatable, tonumber, tostring, type = string.format, setmetatable, tonumber, tostring, type

local M = {}

local ABI_VERSION = 1

ffi.cdef(core.abi_text)

--- Refuses a table of functions that this file was not written for: a wrong declaration would be memory corruption.
---@param address any  light userdata or a pointer
---@return any abi  pointer to struct msdbg_abi
function M.check_abi(address)
  local abi = ffi.cast("const struct msdbg_abi *", address)
  local size = ffi.sizeof "struct msdbg_abi"
  if abi.version ~= ABI_VERSION or abi.size ~= size then
    core.raise("abi", format("msdbg.view: the program has ABI version %d of %d bytes, these scripts are for version %d of %d bytes; "
      .. "install scripts and program of one release", abi.version, abi.size, ABI_VERSION, size), true)
  end
  return abi
end

local abi = M.check_abi(core.abi_table)
M.abi = abi

-- Element types that FFI reads directly; the two 16-bit floats go through the core.
local pointers = {
  bool = "const uint8_t *", int8 = "const int8_t *", int16 = "const int16_t *", int32 = "const int32_t *", int64 = "const int64_t *",
  uint8 = "const uint8_t *", uint16 = "const uint16_t *", uint32 = "const uint32_t *", uint64 = "const uint64_t *",
  float32 = "const float *", float64 = "const double *",
}

local scratch = ffi.new "double[1]"

local function outside(view, i)
  if type(i) ~= "number" then
    core.raise("invalid_argument", format("a view has no field '%s'; it has n, dtype, shape, data, and v[i] from 0", tostring(i)))
  end
  core.raise("invalid_argument", format("view: index %s lies outside 0 to %d", tostring(i), view.n - 1))
end

local Direct = {}
function Direct.__index(view, i)
  if type(i) ~= "number" or i < 0 or i >= view.n then return outside(view, i) end
  return tonumber(view.data[i])
end

local Widened = {}
function Widened.__index(view, i)
  if type(i) ~= "number" or i < 0 or i >= view.n then return outside(view, i) end
  abi.element(view.raw, i, scratch)
  return scratch[0]
end

local function read_only(_, key) core.raise("invalid_argument", format("view: elements cannot be assigned (here: %s)", tostring(key))) end
local function describe(view) return format("<view %s %d elements>", view.dtype, view.n) end
for _, class in pairs { Direct, Widened } do
  class.__newindex, class.__tostring = read_only, describe
end

--- Makes the view behind tensor:view().
---@param tensor msdbg.Tensor
---@return msdbg.View
function M.new(tensor)
  local owner, address = core.view_memory(tensor)
  local raw = ffi.cast("const msdbg_view *", address)
  local dtype = tensor.dtype
  local pointer = pointers[dtype]
  local view = { owner = owner, raw = raw, n = tonumber(raw.count), dtype = dtype, shape = tensor.shape,
    data = pointer and ffi.cast(pointer, raw.data) or raw.data }
  return setmetatable(view, pointer and Direct or Widened)
end

--- Elements `first` to `first + n - 1` widened to double.
---@param view msdbg.View
---@param first integer
---@param n integer
---@return any doubles  cdata double[n]
function M.doubles(view, first, n)
  if first < 0 or n < 0 or first + n > view.n then
    core.raise("invalid_argument", format("view: elements %d to %d lie outside 0 to %d", first, first + n - 1, view.n - 1))
  end
  local out = ffi.new("double[?]", n)
  abi.elements(view.raw, first, n, out)
  return out
end

--- Statistics of a view in one pass: cdata msdbg_stats.
---@param view msdbg.View
---@return any stats
function M.statistics(view)
  local out = ffi.new "msdbg_stats"
  abi.statistics(view.raw, out)
  return out
end

return M
