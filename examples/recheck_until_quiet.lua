-- Which weight changes most? Raises a threshold and rechecks until one hit is left; only the first check reads tensors.
--   msdbg run recheck_until_quiet.lua DUMP
local msdbg = require "msdbg"

local s = msdbg.open(arg[1] or msdbg.fail "usage: msdbg run recheck_until_quiet.lua DUMP")
local w = s:watch { on = "@weight", when = "weight_change_too_large", abs_mean_update_ratio_gt = 0 }

local function report(limit, r)
  local read = r.coverage.tensors - r.coverage.from_cache
  print(("change > %-10.4g  %3d hits, %d tensors read"):format(limit, #r.hits, read))
  return r
end

local r = report(0, s:check())
while #r.hits > 1 do
  local ratios = {}
  for i, hit in ipairs(r.hits) do ratios[i] = hit.params[1].actual end
  table.sort(ratios)
  local middle = ratios[math.floor(#ratios / 2)]
  if middle == ratios[#ratios] then break end  -- equal ratios cannot be separated
  w:set { abs_mean_update_ratio_gt = middle }
  r = report(middle, s:recheck())
end

for _, hit in ipairs(r.hits) do
  print(("left: step %d  %s changed by %.4g of its mean magnitude"):format(hit.step, hit.node, hit.params[1].actual))
end
