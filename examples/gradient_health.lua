-- A table per layer and step: mean |gradient| of the layer's weight, mean |weight|, and how much the step changed it.
--   msdbg run gradient_health.lua DUMP
local msdbg = require "msdbg"

local s = msdbg.open(arg[1] or msdbg.fail "usage: msdbg run gradient_health.lua DUMP")

-- The gradient is the input of the optimizer that a gradient operator produces.
local function gradient_of(weight, step)
  for _, user in ipairs(weight.users) do
    for i, input in ipairs(user.node.inputs) do
      if input.node and input.node.name:find "^Gradients" then return user.node:input(i - 1, { step = step }) end
    end
  end
end

-- A tensor of NaN has no mean.
local function text(number) return number and ("%.4g"):format(number) or "-" end

print(("%-4s  %-14s  %12s  %12s  %12s"):format("step", "weight", "|gradient|", "|weight|", "change"))
for step in s:each_step() do
  for weight in s:nodes "@weight":each() do
    local now = weight:value()
    local before = now and now:previous()
    if before then
      local gradient = gradient_of(weight, step)
      print(("%-4d  %-14s  %12s  %12s  %12s"):format(step, weight.name, text(gradient and gradient.stats.abs_mean),
        text(now.stats.abs_mean), text(now:change_ratio(before))))
    end
  end
end
