-- Which weights did a training step leave unchanged? They get no gradient: they are frozen, disconnected, or behind dead activations.
--   msdbg run unchanged_weights.lua DUMP
local msdbg = require "msdbg"

local s = msdbg.open(arg[1] or msdbg.fail "usage: msdbg run unchanged_weights.lua DUMP")
s:watch { on = "@weight", when = "weight_not_changed" }

local r = s:check()
for _, hit in ipairs(r.hits) do
  print(("step %d  %s  unchanged, mean |w| %.4g"):format(hit.step, hit.node, hit.stats.abs_mean))
end

-- Weights that were not compared are listed, not counted as changed.
local count, reasons = {}, {}
for _, entry in ipairs(r.not_checked) do
  if not count[entry.reason] then reasons[#reasons + 1] = entry.reason end
  count[entry.reason] = (count[entry.reason] or 0) + 1
end
for _, reason in ipairs(reasons) do print(("%d not checked: %s"):format(count[reason], reason)) end
print(("%d of %d weights and steps unchanged"):format(#r.hits, r.coverage.checked))
