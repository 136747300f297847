-- Ends a training whose learning rate is too high: several steps in a row change a weight by a large fraction of its size.
--   msdbg listen --script rate_watchdog.lua [-- RATIO [STEPS_IN_A_ROW]]
local ratio    = tonumber(arg[1] or 0.2)  -- largest accepted mean |change| / mean |weight| per step
local patience = tonumber(arg[2] or 3)

-- Biases start at zero, so any change is large.
s:watch { name = "change", on = "@weight and not *.bias", when = "weight_change_too_large", abs_mean_update_ratio_gt = ratio }

-- On a GPU a parameter can be read if an operator that uses it was read; the watchpoint above makes the training read the optimizer.
local function rate()
  local t = s:node("learning_rate"):value()
  return t and ("%.4g"):format(t.stats.mean) or "unknown"
end

local in_a_row, last, r = 0
repeat
  r = s:continue()
  if r.reason == "hit" then
    in_a_row = r.step - 1 == last and in_a_row + 1 or 1
    last = r.step
    for _, hit in ipairs(r.hits) do
      print(("step %d  %s changed by %.3g of itself, learning rate %s"):format(hit.step, hit.node, hit.params[1].actual, rate()))
    end
    if in_a_row >= patience and r.held then
      s:terminate()
      print(("%d steps in a row: the training was ended"):format(in_a_row))
      os.exit(1)
    end
  end
until r.state ~= "held"
print(("the training has ended by itself after %d steps"):format(r.completed_steps))
