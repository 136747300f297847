-- Calls functions of the library with arguments from the input: values of every type, tables with metamethods, objects of another
-- class, results of earlier calls. Any error is fine except one with code "internal".
local input = ...
local core = require "msdbg.core"
local msdbg = require "msdbg"
local ffi = require "ffi"

jit.off()  -- only the interpreter counts instructions, which is needed below

-- ---- the functions -----------------------------------------------------------------------------------------------

-- They end the process, wait for input, run programs, or report errors on purpose.
local LEFT_OUT = { exit = true, raise = true, fail = true, wait = true, seconds = true, feed_shell = true }

local calls = {}

local function add_all(functions)
  local names = {}
  for name, call in pairs(functions) do
    if type(name) == "string" and type(call) == "function" and not LEFT_OUT[name] then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do calls[#calls + 1] = functions[name] end
end

add_all(core)
for _, name in ipairs { "", ".series", ".rule_library", ".plot", ".table", ".json", ".steps", ".format", ".dtype", ".infer",
  ".tensor_elements", ".pretty" } do
  add_all(require("msdbg" .. name))
end
local registry = debug.getregistry()
for _, class in ipairs(core.classes()) do
  add_all(registry["msdbg." .. class].methods)
  add_all(registry["msdbg." .. class].fields)
end

-- ---- the arguments -----------------------------------------------------------------------------------------------

local at = 0
local function byte()
  at = at + 1
  return input:byte(at) or 0
end

local WORDS = { "", "fake", "fc.weight", "Default/net/Log-op0", "Default/net/Log-op0:0", "op:ReLU", "*", "/(a|b)*$/", "x > 1", "any(isnan(x))",
  "TO", "tensor_too_large max_gt=3", "0:2,:", "nan", "inf", "0", "1:", "json", "out.html", "default", "mean", "@weight", "float32", "steps",
  "values", "shape", "dtype", "name", "op", "inputs", "on", "when", "limit", "depth", "bins", "slots", "rank", "graph", "execution", "key",
  "params", "rules", "profile", "select", "check", "cases", "tolerance", "width", "height", "n", "path", "threads", "budget", "data" }
local NUMBERS = { 0, -0.0, 1, -1, 2, 0.5, 7, 100, 1e3, 2^31 - 1, 2^31, -2^31, 2^32, 2^53, -2^53, 2^63, 2^64, 1e300, 5e-324, 1/0, -1/0, 0/0 }

local session = msdbg.open "fake"
local makers = {
  function() return session end,
  function() return session:tensor "Default/net/Log-op0:0" end,
  function() return session:tensor("Default/net/Log-op0:0"):view() end,
  function() return session:tensor("Default/net/Log-op0:0").stats end,
  function() return session:nodes "*" end,
  function() return session:nodes("*")[1] end,
  function() return session:watch { on = "**", when = "TO" } end,
  function() return session:check() end,
  function() return session:check().hits[1] end,
  function() return msdbg.origin(session) end,
  function() return msdbg.diff(session, msdbg.open "fake") end,
  function() return msdbg.listen {} end,
  function() return (msdbg.listen {}):step() end,
  function() return msdbg end,
  function() return core end,
  function() return io.stdout end,
  function() return ffi.new("int64_t", 3) end,
  function() return ffi.new("double[4]") end,
  function() return coroutine.create(function() end) end,
}
local results = {}
local value

local function metamethods(depth)
  local meta = {}
  for _, name in ipairs { "__index", "__len", "__call", "__tostring", "__eq", "__lt", "__concat", "__pairs", "__name", "__metatable", "__newindex" } do
    if byte() % 3 == 0 then meta[name] = value(depth + 1) end
  end
  return meta
end

function value(depth)
  local kind = byte() % 20
  if depth > 4 and kind >= 8 and kind <= 12 then kind = kind - 5 end
  if kind == 0 then return nil end
  if kind <= 2 then return kind == 1 end
  if kind == 3 then return byte() - 128 end
  if kind == 4 then return NUMBERS[byte() % #NUMBERS + 1] end
  if kind == 5 then
    local bytes = ffi.new("uint8_t[8]")
    for i = 0, 7 do bytes[i] = byte() end
    local number = ffi.cast("double*", bytes)[0]
    return number == number and number or 0/0  -- a NaN with other bits is not a number of Lua
  end
  if kind == 6 then return WORDS[byte() % #WORDS + 1] end
  if kind == 7 then
    local length = byte()
    at = at + length
    return input:sub(at - length + 1, at)
  end
  if kind == 8 then
    local list = {}
    for i = 1, byte() % 6 do list[i] = value(depth + 1) end
    return list
  end
  if kind == 9 or kind == 10 then
    local record = {}
    for _ = 1, byte() % 6 do
      local key = byte() % 8 > 0 and WORDS[byte() % #WORDS + 1] or value(depth + 1)
      if key ~= nil and key == key then record[key] = value(depth + 1) end
    end
    return kind == 9 and record or setmetatable(record, metamethods(depth))
  end
  if kind == 11 then
    local result = value(depth + 1)
    return function() return result end
  end
  if kind == 12 then
    local what = value(depth + 1)
    return function() error(what) end
  end
  if kind == 13 then return calls[byte() % #calls + 1] end
  if kind == 14 and #results > 0 then return results[byte() % #results + 1] end
  local made, object = pcall(makers[byte() % #makers + 1])
  return made and object or nil
end

-- ---- the calls ---------------------------------------------------------------------------------------------------

local function too_long() error("too many instructions", 0) end

while at < #input do
  local call = calls[(byte() + 256 * byte()) % #calls + 1]
  local count = byte() % 6
  local arguments = {}
  for i = 1, count do arguments[i] = value(0) end
  debug.sethook(too_long, "", 1000000)
  local ok, result = pcall(call, unpack(arguments, 1, count))
  debug.sethook()
  if ok then
    results[#results % 16 + 1] = result
  elseif type(result) == "table" and rawget(result, "code") == "internal" then
    error("finding: " .. tostring(rawget(result, "message")))
  end
end
