-- Finds the operator that breaks a training, unattended: a coarse watchpoint on gradients, then operator by operator through the layer
-- that hit, and on to the layers where its bad inputs came from.
--   msdbg listen --script live_hunt.lua [-- LIMIT [STEPS [MINUTES [terminate|detach [SELECTOR]]]]]
local layers = require "layers"
local msdbg = require "msdbg"

-- A mistyped argument ends the hunt now, not in the morning.
local function number(i, default)
  return tonumber(arg[i] or default) or msdbg.fail(("argument %d is a number, not '%s'"):format(i, arg[i]))
end

local limit    = number(1, 100)      -- no good value has a larger mean magnitude
local steps    = number(2, 100000)   -- budget: steps ...
local minutes  = number(3, 600)      -- ... and minutes
local finally  = arg[4] or "terminate"        -- what to do with the training at the end
local selector = arg[5] or "@gradient"        -- what to watch first
local give_up  = os.time() + minutes * 60
if finally ~= "terminate" and finally ~= "detach" then
  msdbg.fail(("argument 4 is terminate or detach, not '%s'"):format(finally))
end
layers.limit = limit

local function in_budget(r) return r.state == "held" and r.completed_steps < steps and os.time() < give_up end

-- 1. Coarse: let it run until a gradient looks wrong.
local coarse = { s:watch { name = "too large", on = selector, when = "gradient_too_large", abs_mean_gt = limit },
                 s:watch { name = "not finite", on = selector, when = "gradient_exploding" },
                 s:watch { name = "all zero", on = selector, when = "tensor_all_zero" } }
local r
repeat
  r = s:continue { steps = steps, timeout = math.max(0, give_up - os.time()) }
until r.reason ~= "not checked" or not in_budget(r)
for _, w in ipairs(coarse) do w:remove() end
if r.reason ~= "hit" then
  print(("nothing found: %s after %d steps"):format(r.reason, r.completed_steps))
  if r.state == "held" then s[finally](s) end
  os.exit(0)
end

local node = s:node(r.hits[1].node)
print(("step %d  %s: %s"):format(r.step, r.hits[1].watch_name, node.name))
if not r.held then
  print("the training was over before anything could be read")
  os.exit(1)
end
local what, from

-- 2. Narrow: go operator by operator to the one that broke first.
node, what, from, r = layers.narrow(s, node, r, in_budget)

-- 3. Report.
print(("first bad operator: step %d  %s is %s"):format(r.step, node.name, what or "sound again"))
for _, frame in ipairs(node.stack) do print(("  %s:%d  %s"):format(frame.file, frame.line, frame.code)) end
for i, input in ipairs(node.inputs) do
  local t = node:input(i - 1)
  print(("  input:%d  %-10s %s"):format(i - 1, t and (layers.wrong(t) or "sound") or "unknown", input.name))
end
if from and from.kind == "parameter" then print(("  it was wrong from the start of the step: %s"):format(from.name)) end

-- 4. Would a tighter limit have found it, or other tensors that were read? A recheck runs nothing.
local rule, parameter, bounds = "tensor_too_large", "abs_mean_gt", { limit, limit / 100, limit / 10000 }
if what == "all zero" then rule, parameter, bounds = "tensor_all_zero", "zero_percentage_ge", { 100, 75, 50 } end
local w = s:watch { name = "tighter", on = "@all and not @constant", when = rule, [parameter] = bounds[1] }
for _, bound in ipairs(bounds) do
  w:set { [parameter] = bound }
  print(("  recheck with %s %g: %d hits"):format(parameter, bound, #s:recheck().hits))
end
w:remove()

-- 5. Detach or terminate.
if r.state == "held" then s[finally](s) end
os.exit(1)
