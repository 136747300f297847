-- Derives a threshold from a healthy run: the smallest one whose false-alarm rate stays below RATE. Then tries it on another run.
--   msdbg run calibrate_threshold.lua HEALTHY_DUMP [RATE] [OTHER_DUMP]
local msdbg = require "msdbg"
local format = require "msdbg.format"
local steps = require "msdbg.steps"

local healthy = msdbg.open(arg[1] or msdbg.fail "usage: msdbg run calibrate_threshold.lua HEALTHY_DUMP [RATE] [OTHER_DUMP]")
local rate = tonumber(arg[2] or 0.01)
if not rate or rate <= 0 or rate >= 1 then msdbg.fail(("RATE is a share between 0 and 1, not '%s'"):format(arg[2])) end

-- The measure: the largest gradient element relative to the mean magnitude of its tensor.
local function measure(t)
  local stats = t.stats
  if not stats.abs_mean or stats.abs_mean == 0 then return nil end
  return math.max(-stats.min, stats.max) / stats.abs_mean
end

local values = {}
for _, t in ipairs(healthy:tensors { on = "@gradient", steps = "all" }) do values[#values + 1] = measure(t) end
if #values == 0 then msdbg.fail "no gradient of this dump has a magnitude" end

-- The chosen share of a healthy run's values is above the quantile. Few values cannot guarantee a small rate: if none of n values is
-- above the threshold, the true rate is below 3 / n with 95 % confidence.
local threshold = steps.quantile(values, 1 - rate)
local median, largest = steps.median(values), steps.quantile(values, 1)
print(("%d gradients, median %s, largest %s"):format(#values, format.number(median), format.number(largest)))
print(("threshold %s for a false-alarm rate of %s"):format(format.number(threshold), format.percent(rate)))
if rate < 3 / #values then print(("too few values to promise less than %s"):format(format.percent(3 / #values))) end

local function count_alarms(name, s)
  s:watch { name = "spike", on = "@gradient", when = ("norminf(x) > %.17g * mean(abs(x))"):format(threshold) }
  local r = s:check()
  local open = r.coverage.not_checked
  print(("%s %d of %d gradients above it, %s%s"):format(name, #r.hits, r.coverage.checked,
    format.percent(#r.hits / math.max(1, r.coverage.checked)), open > 0 and ("; %d not checked"):format(open) or ""))
end

count_alarms("healthy run:", healthy)
if arg[3] then count_alarms("other run:  ", msdbg.open(arg[3])) end
