-- Finds the operator that breaks a training, with nobody watching: a coarse watch on gradients, then operator by operator through the
-- layer that hit, and on to the layers that its bad inputs came from.
--   msdbg listen --script hunt.lua [-- LIMIT [STEPS [MINUTES [terminate|detach [SELECTOR]]]]]
local limit    = tonumber(arg[1] or 100)      -- no sound value has a larger mean magnitude
local steps    = tonumber(arg[2] or 100000)   -- budget: steps ...
local minutes  = tonumber(arg[3] or 600)      -- ... and minutes
local finally  = arg[4] or "terminate"        -- what becomes of the training
local selector = arg[5] or "@gradient"        -- what is watched at first
local give_up  = os.time() + minutes * 60

-- What is wrong with a value, or nil.
local function wrong(t)
  local st = t and t.stats
  if not st or st.count == 0 then return nil end
  if st.nan_count + st.pos_inf_count + st.neg_inf_count > 0 then return "not finite" end
  if st.abs_mean and st.abs_mean > limit then return "too large" end
  if st.zero_count == st.count then return "all zero" end
end

-- The operator that has just run: what is wrong with its outputs, and which operator or parameter gave it a wrong input.
local function examine(node)
  local out, from
  for i = 0, #node.outputs - 1 do out = out or wrong((node:output(i))) end
  for i, input in ipairs(node.inputs) do
    local bad = input.node and wrong((node:input(i - 1)))
    if bad and (input.node.kind == "operator" or bad ~= "all zero") then from = from or input.node end  -- biases begin at zero
  end
  return out, from
end

-- Gradients/Default/net/fc2-Dense/gradMatMul-expand belongs to the layer Default/net/fc2-Dense.
local function layer_of(node)
  return (node.scope:gsub("^Gradients/", ""):gsub("/[^/]*[gG]rad[^/]*$", ""))
end

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
local what, from = examine(node)

-- 2. Narrow: a wrong input came from another operator. Go through its layer, one operator after the other; and from there on.
local seen = {}
while from and from.kind == "operator" and not seen[layer_of(from)] and in_budget(r) do
  local layer = layer_of(from)
  local inside = s:nodes { "scope:" .. layer, "scope:Gradients/" .. layer }
  print(("step %d  %d operators of %s"):format(r.step, #inside, layer))
  seen[layer], from = true, nil
  for candidate in inside:each() do
    if s.can.run_to then  -- an Ascend is held at the end of a step, with every value of it at hand
      r = s:run_to(candidate)
      if r.reason == "node not met" then r = s:run_to(candidate) end  -- it runs before the one that hit: in the next step, then
      if r.node ~= candidate.name then break end
    end
    local out, input = examine(candidate)
    if out then
      node, what, from = candidate, out, input
      break
    end
  end
end

-- 3. Report.
print(("first bad operator: step %d  %s is %s"):format(r.step, node.name, what or "sound again"))
for _, frame in ipairs(node.stack) do print(("  %s:%d  %s"):format(frame.file, frame.line, frame.code)) end
for i, input in ipairs(node.inputs) do
  local t = node:input(i - 1)
  print(("  input:%d  %-10s %s"):format(i - 1, t and (wrong(t) or "sound") or "unknown", input.name))
end
if from and from.kind == "parameter" then print(("  it was wrong from the start of the step: %s"):format(from.name)) end

-- 4. Would tighter bounds have shown it, or others that were read? Nothing runs for that.
local rule, parameter, bounds = "tensor_too_large", "abs_mean_gt", { limit, limit / 100, limit / 10000 }
if what == "all zero" then rule, parameter, bounds = "tensor_all_zero", "zero_percentage_ge", { 100, 75, 50 } end
local w = s:watch { name = "tighter", on = "@all and not @constant", when = rule, [parameter] = bounds[1] }
for _, bound in ipairs(bounds) do
  w:set { [parameter] = bound }
  print(("  recheck with %s %g: %d hits"):format(parameter, bound, #s:recheck().hits))
end
w:remove()

-- 5. Let go.
if r.state == "held" then s[finally](s) end
os.exit(1)
