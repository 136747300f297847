-- A custom condition: activations that are mostly zero, as a Lua function that reads the finished statistics.
--   msdbg run custom_watchpoint.lua DUMP [PERCENT]
local msdbg = require "msdbg"

local s = msdbg.open(arg[1] or msdbg.fail "usage: msdbg run custom_watchpoint.lua DUMP [PERCENT]")
local limit = tonumber(arg[2] or 90)

s:watch {
  name = "mostly dead",
  on = "@activation",
  when = function(t)
    local percent = t.stats.zero_percentage
    if percent and percent >= limit then return { actual = percent, alive = t.stats.count - t.stats.zero_count } end
  end,
}

local r = s:check()
for _, hit in ipairs(r.hits) do
  print(("step %d  %s  %.4g %% zero, %s alive"):format(hit.step, hit.node, hit.stats.zero_percentage, hit.details.alive))
end
print(("%d hits, %d tensors checked"):format(#r.hits, r.coverage.checked))
