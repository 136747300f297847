-- Looks for anomalies unattended: coarse statistics of every tensor, then a closer look at the scopes that stand out, then a report.
--   msdbg run anomaly_hunt.lua DUMP [REPORT.md]
local msdbg = require "msdbg"
local steps = require "msdbg.steps"
local tables = require "msdbg.table"

local s = msdbg.open(arg[1] or msdbg.fail "usage: msdbg run anomaly_hunt.lua DUMP [REPORT.md]")

-- Coarse: one number per tensor and step, grouped by tensor; the same name on another rank or in another graph is a different tensor.
local magnitudes, scopes = {}, {}
for _, t in ipairs(s:tensors { steps = "all" }) do
  local readable, stats = pcall(function() return t.stats end)
  if readable then
    local name, scope = ("%d %d %s"):format(t.rank, t.node.graph_id, t.name), t.node.scope
    magnitudes[name] = magnitudes[name] or { scope = scope, values = {} }
    table.insert(magnitudes[name].values, stats.abs_mean or false)
    scopes[scope] = scopes[scope] or { scope = scope, bad = 0, growth = 1 }
    local bad = (stats.nan_count or 0) + (stats.pos_inf_count or 0) + (stats.neg_inf_count or 0)
    scopes[scope].bad = scopes[scope].bad + (bad > 0 and 1 or 0)
  end
end
for _, tensor in pairs(magnitudes) do
  local usual, largest = steps.median(tensor.values), steps.quantile(tensor.values, 1)
  if usual and usual > 0 then scopes[tensor.scope].growth = math.max(scopes[tensor.scope].growth, largest / usual) end
end

-- Suspects: NaN or Inf counts most, then how far a tensor left its usual magnitude.
local ranking = tables.new { "scope", { "not finite", align = "right" }, { "growth", digits = 3 } }
for scope, found in pairs(scopes) do
  if found.bad > 0 or found.growth > 10 then ranking:add(scope == "" and "(top level)" or scope, found.bad, found.growth) end
end
if #ranking.rows == 0 then
  print(("nothing stands out in %d steps"):format(#s.steps))
  os.exit(0)
end
ranking:sort "scope":sort("growth", true):sort("not finite", true)
print(ranking:text { width = 110 })

-- Narrow: only the three worst scopes, with more expensive conditions. Tensors without a scope are parameters.
local suspects = {}
for i = 1, math.min(3, #ranking.rows) do
  local scope = ranking.rows[i][1]
  suspects[i] = scope == "(top level)" and "@parameter" or "scope:" .. scope
end
s:watch { on = suspects, when = "tensor_overflow" }
local jump = s:watch { name = "jump", on = suspects, when = "mean(abs(x)) > 10 * mean(abs(prev))" }
local r = s:check()
if #r.hits > 20 then
  jump:set { when = "mean(abs(x)) > 1000 * mean(abs(prev))" }
  r = s:recheck()
end

print(("%d findings in %d suspect scopes"):format(#r.hits, #suspects))
for i = 1, math.min(5, #r.hits) do print("  " .. tostring(r.hits[i])) end
if arg[2] then
  io.output(arg[2])
  io.write(msdbg.report(s, r):markdown())
end
os.exit(#r.hits > 0 and 1 or 0)
