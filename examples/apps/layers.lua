-- Helpers for live_hunt.lua: what is wrong with a value, where it came from, and how to walk through a layer.
if ... ~= "layers" then require "msdbg".fail "layers.lua is a module of live_hunt.lua: msdbg listen --script live_hunt.lua" end

local M = { limit = 100 }  -- no good value has a larger mean magnitude

-- What is wrong with a value, or nil.
function M.wrong(t)
  local st = t and t.stats
  if not st or st.count == 0 then return nil end
  if st.nan_count + st.pos_inf_count + st.neg_inf_count > 0 then return "not finite" end
  if st.abs_mean and st.abs_mean > M.limit then return "too large" end
  if st.zero_count == st.count then return "all zero" end
end

-- For the operator that has just run: what is wrong with its outputs, and which operator or parameter gave it a bad input.
function M.examine(node)
  local out, from
  for i = 0, #node.outputs - 1 do out = out or M.wrong((node:output(i))) end
  for i, input in ipairs(node.inputs) do
    local bad = input.node and M.wrong((node:input(i - 1)))
    if bad and (input.node.kind == "operator" or bad ~= "all zero") then from = from or input.node end  -- biases begin at zero
  end
  return out, from
end

-- Gradients/Default/net/fc2-Dense/gradMatMul-expand belongs to the layer Default/net/fc2-Dense.
local function layer_of(node)
  return (node.scope:gsub("^Gradients/", ""):gsub("/[^/]*[gG]rad[^/]*$", ""))
end

-- If a bad input came from another operator, walks through that operator's layer, one operator at a time, and continues from there. Returns
-- the first bad operator with good inputs, what is wrong with it, a parameter that was already bad, and the last result.
function M.narrow(s, node, r, in_budget)
  local what, from = M.examine(node)
  local seen = {}
  while from and from.kind == "operator" and not seen[layer_of(from)] and in_budget(r) do
    local layer = layer_of(from)
    local inside = s:nodes { "scope:" .. layer, "scope:Gradients/" .. layer }
    print(("step %d  %d operators of %s"):format(r.step, #inside, layer))
    seen[layer], from = true, nil
    for candidate in inside:each() do
      if s.can.run_to then  -- Ascend is held at the end of a step and has all values of the step
        r = s:run_to(candidate)
        if r.reason == "node not met" then r = s:run_to(candidate) end  -- it runs before the operator that hit, so try the next step
        if r.node ~= candidate.name then break end
      end
      local out, input = M.examine(candidate)
      if out then
        node, what, from = candidate, out, input
        break
      end
    end
  end
  return node, what, from, r
end

return M
