-- The five expressions of bench_expr as loops over FFI memory; answers each line with the seconds they took.
local ffi = require "ffi"
ffi.cdef [[
typedef struct { long sec; long nsec; } msdbg_time;
int clock_gettime(int clock, msdbg_time *out);
]]
local abs, sqrt, max, huge = math.abs, math.sqrt, math.max, math.huge

local elements = 64 * 1024 * 1024
local x = ffi.new("float[?]", elements)
for i = 0, elements - 1 do x[i] = sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * math.pi * math.random()) end

local function now()
  local time = ffi.new "msdbg_time"
  ffi.C.clock_gettime(1, time)
  return tonumber(time.sec) + tonumber(time.nsec) * 1e-9
end

local function any()
  for i = 0, elements - 1 do if abs(x[i]) * 2 > 20 then return true end end
  return false
end
local function count()
  local n = 0
  for i = 0, elements - 1 do if x[i] * x[i] > 4 then n = n + 1 end end
  return n > 100
end
local function mean()
  local sum = 0
  for i = 0, elements - 1 do sum = sum + abs(x[i] - 0.5) end
  return sum / elements > 1
end
local function percent()
  local n = 0
  for i = 0, elements - 1 do if abs(x[i] - 1) < 0.01 then n = n + 1 end end
  return n * 100 / elements > 5
end
local function largest()
  local best = -huge
  for i = 0, elements - 1 do best = max(best, x[i] * 3 - 1) end
  return best > 100
end

for _ in io.lines() do
  local start = now()
  any() count() mean() percent() largest()
  io.write(("%.6f\n"):format(now() - start))
  io.flush()
end
