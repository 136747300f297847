-- The shortest useful search: step until any tensor holds NaN or Inf, print its origin, recheck with another condition, and end the
-- training.
--   msdbg listen --script first_bad.lua [-- STEPS]
local steps = tonumber(arg[1] or 1000)

local w = s:watch { name = "not finite", on = "**", when = "TO" }
local r
for _ = 1, steps do
  r = s:step(1)
  if r.reason ~= "done" then break end
  print(("step %d  nothing to see"):format(r.step))
end
print(r)
if r.reason ~= "hit" then os.exit(0) end
if not r.held then os.exit(1) end  -- found after the last step: nothing can be read any more

print(msdbg.origin(s))

-- The training is still held, so another condition can be tried on the very same values. Here: what had zeros before the log?
w:set { when = "TZ", zero_percentage_ge = 3 }
local again = s:recheck()
print(("recheck with %s: %d tensors of this step have 3 %% zeros or more"):format(w.when, #again.hits))
for i = 1, math.min(3, #again.hits) do print("  " .. again.hits[i].node .. ":" .. again.hits[i].slot) end

print(s:terminate())
os.exit(1)
