-- Finds the operator that breaks a training, with nobody watching: a coarse watch on all gradients, then the layer that hit, operator
-- by operator.
--   msdbg listen --script hunt.lua [-- LIMIT [STEPS [MINUTES [detach|terminate]]]]
local limit   = tonumber(arg[1] or 100)     -- a gradient above this is worth a closer look
local steps   = tonumber(arg[2] or 10000)   -- budget: so many steps
local minutes = tonumber(arg[3] or 600)     --         and minutes
local finally = arg[4] or "terminate"       -- what becomes of the training
local give_up = os.time() + minutes * 60

local function bad(t)
  local st = t and t.stats
  if not st then return nil end
  if st.nan_count > 0 then return st.nan_count .. " NaN" end
  if st.pos_inf_count + st.neg_inf_count > 0 then return (st.pos_inf_count + st.neg_inf_count) .. " Inf" end
  local largest = st.max and math.max(math.abs(st.max), math.abs(st.min)) or 0
  if largest > limit then return ("largest %.4g"):format(largest) end
end

-- A bad output of an operator whose inputs are sound: what, or nil.
local function broken(node)
  for i = 0, #node.inputs - 1 do
    if bad((node:input(i))) then return nil end
  end
  for i = 0, #node.outputs - 1 do
    local what = bad((node:output(i)))
    if what then return what, i end
  end
end

-- The layer of an operator, forward and backward: .../fc2-Dense for Gradients/.../fc2-Dense/gradMatMul-expand.
local function layer_of(node)
  return (node.scope:gsub("^Gradients/", ""):gsub("/[^/]*[gG]rad[^/]*$", ""))
end

local function in_budget(r) return r.state == "held" and os.time() < give_up and s.current_step < steps end

-- 1. Run with a coarse watch until it hits.
local coarse = { s:watch { name = "large", on = "@gradient", when = "gradient_too_large", max_gt = limit, min_gt = limit },
                 s:watch { name = "not finite", on = "@gradient", when = "gradient_exploding" } }
local r = s:continue { steps = steps, timeout = minutes * 60 }
for _, w in ipairs(coarse) do w:remove() end

local culprit, what, slot
if r.reason == "hit" then
  local hit = r.hits[1]
  local node = s:node(hit.node)
  local layer = layer_of(node)
  print(("step %d  %s hit on %s"):format(r.step, hit.watch_name, hit.node))

  -- 2. The operator that hit may be the one: the operators before it in this step are gone.
  what, slot = broken(node)
  if what then culprit = node end

  -- 3. Otherwise go through its layer in the next steps, one operator at a time.
  local inside = s:nodes { "scope:" .. layer, "scope:Gradients/" .. layer }
  print(("layer %s, %d operators"):format(layer, #inside))
  while not culprit and in_budget(r) do
    r = s:run_to(inside[1])
    for i = 1, #inside do
      if r.node == inside[i].name then
        what, slot = broken(inside[i])
        if what then culprit = inside[i] break end
        if i < #inside then r = s:next_node() end
      end
    end
  end
end

-- 4. Who else is close to the limit? Nothing runs for that.
if culprit then
  print(("first bad operator: step %d  %s:output:%d  %s"):format(r.step, culprit.name, slot, what))
  for _, frame in ipairs(culprit.stack) do print(("  %s:%d  %s"):format(frame.file, frame.line, frame.code)) end
  local w = s:watch { name = "close", on = culprit, when = "tensor_too_large", max_gt = limit }
  for _, bound in ipairs { limit, limit / 10, limit / 100 } do
    w:set { max_gt = bound }
    print(("  above %g: %d values"):format(bound, #s:recheck().hits))
  end
  w:remove()
else
  print(("nothing found: %s after step %d"):format(r.reason, r.step))
end

-- 5. Let go.
if r.state == "held" then s[finally](s) end
os.exit(culprit and 1 or 0)
