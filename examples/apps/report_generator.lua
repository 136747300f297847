-- A custom report in Markdown: the run, the origin of its first NaN, how the weights change, and what the rules found.
--   msdbg run report_generator.lua DUMP [REPORT.md]
local msdbg = require "msdbg"
local format = require "msdbg.format"
local plot = require "msdbg.plot"
local steps = require "msdbg.steps"
local tables = require "msdbg.table"

local path = arg[1] or msdbg.fail "usage: msdbg run report_generator.lua DUMP [REPORT.md]"
local s = msdbg.open(path)
local parts = {}
local function add(text, ...) parts[#parts + 1] = select("#", ...) > 0 and text:format(...) or text end

add("# %s", s.info.short_name)
local nodes = 0
for _, graph in ipairs(s.graphs) do nodes = nodes + graph.nodes end
add("%d steps, %d ranks, %d graphs with %s nodes; layout %s.", #s.steps, #s.ranks, #s.graphs, format.count(nodes), s.info.layout)

local answer = msdbg.origin(s)
local first = answer.origins[1]
if first then
  local frame = first.stack[1]
  add("The first NaN or Inf is in step %d: `%s:%s`%s. It reaches %d tensors of that step.", first.step, first.node, first.slot,
    frame and (", %s:%d"):format(frame.file, frame.line) or "", first.reached)
elseif answer.coverage.checked == 0 then
  add("Nothing could be checked: %d tensors, none of which can be judged.", answer.coverage.tensors)
else
  add("No NaN and no Inf in %d of %d tensors; %d could not be checked.", answer.coverage.checked, answer.coverage.tensors,
    answer.coverage.not_checked)
end

add "## Weights"
local weights = tables.new { "weight", "shape", { "mean abs", digits = 4 }, { "change", digits = 3 }, "over steps" }
for w in s:nodes("@weight", { optional = true }):each() do
  local series = steps.series(s, w, "abs_mean")
  local change = steps.series(s, w, "change")
  local last = #series.steps
  local t = last > 0 and w:value { step = series.steps[last] }
  if t then
    weights:add(w.name, tostring(t.shape), series.values[last] or nil, change.values[last] or nil,
      plot.sparkline(series.values, { colour = false }))
  end
end
add(#weights.rows > 0 and weights:sort "weight":markdown() or "No value of a weight was dumped.")

add "## Findings"
s:watch { on = "@all", when = "tensor_overflow" }
s:watch { on = "@weight", optional = true, when = "weight_change_too_large", abs_mean_update_ratio_gt = 0.1 }
add(msdbg.report(s, s:check()):markdown())

local text = table.concat(parts, "\n\n") .. "\n"
if arg[2] then
  local file = assert(io.open(arg[2], "w"))
  file:write(text)
  file:close()
  print(("%s: %s"):format(arg[2], format.bytes(#text)))
else
  io.write(text)
end
