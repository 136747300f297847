-- Ends a training whose learning rate is too high: several steps in a row change a weight by a large part of itself.
--   msdbg listen --script rate_watchdog.lua [-- RATIO [STEPS_IN_A_ROW]]
local ratio    = tonumber(arg[1] or 0.2)  -- mean |change| / mean |weight| that one step may cause
local patience = tonumber(arg[2] or 3)

-- Biases begin at zero: any change is large there.
s:watch { name = "change", on = "@weight and not *.bias", when = "weight_change_too_large", abs_mean_update_ratio_gt = ratio }

local function rate()
  local node = s:nodes("learning_rate", { optional = true })[1]
  local t = node and node:value()
  return t and ("%.4g"):format(t.stats.mean) or "?"
end

local in_a_row, last = 0, nil
local r = s:continue()
while r.reason == "hit" do
  in_a_row = (last and r.step == last + 1) and in_a_row + 1 or 1
  last = r.step
  for _, hit in ipairs(r.hits) do
    print(("step %d  %s changed by %.3g of itself, learning rate %s"):format(hit.step, hit.node, hit.params[1].actual, rate()))
  end
  if in_a_row >= patience then
    print(("%d steps in a row: the training is ended"):format(in_a_row))
    s:terminate()
    os.exit(1)
  end
  r = s:continue()
end
print(("training %s after step %d"):format(r.reason, r.step))
