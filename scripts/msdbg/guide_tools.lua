-- What the chapters of the guide share: nodes, values and short texts.
local fmt, ipairs, math, pcall, table = string.format, ipairs, math, pcall, table

local M = {}

--- Nodes of a selector; an empty list if the network has none.
function M.nodes(s, selector)
  return s:nodes(selector, { optional = true })
end

function M.value(node, step)
  local t = node:value { step = step }
  return t and not t.problem and t or nil
end

function M.bad_count(stats)
  return (stats.nan_count or 0) + (stats.pos_inf_count or 0) + (stats.neg_inf_count or 0)
end

--- True if the optimizer is given gradients of all of these parameters, and none is zero or broken.
function M.have_gradients(checklist, names)
  local wanted = {}
  for _, name in ipairs(names) do wanted[name] = true end
  for _, weight in ipairs(checklist.trained) do
    if wanted[weight.name] then
      local node, slot = weight:gradient()
      local t = node and checklist.session:tensor(node.name .. ":" .. slot,
        { step = checklist.steps[#checklist.steps], rank = node.rank, graph = node.graph_id })
      if not t or t.problem or M.bad_count(t.stats) > 0 or (t.stats.abs_mean or 0) == 0 then return false end
    end
  end
  return true
end

--- Mean change against `before`; nil if elements are missing (a dump of statistics only).
function M.change(now, before)
  local ok, ratio = pcall(now.change_ratio, now, before)
  return ok and ratio or nil
end

--- True if two tensors hold the same values. Different ones can have equal statistics, so equality is confirmed on elements.
--- nil: unknown, because there are no elements, and the statistics agree or are not enough.
function M.same_values(a, b)
  local x, y = a.stats, b.stats
  for _, name in ipairs { "count", "min", "max", "mean", "std", "nan_count" } do
    if x[name] and y[name] and x[name] ~= y[name] then return false end
  end
  local ratio = M.change(a, b)
  if ratio then return ratio == 0 and M.bad_count(x) == 0 end
  return nil
end

--- The shortest unique end of a node's name, which can be typed.
function M.short(s, name)
  local tail = name:match "[^/]+/[^/]+$"
  return tail and tail ~= name and pcall(s.node, s, tail) and tail or name
end

function M.count(n, one, many)
  return fmt("%d %s", n, n == 1 and one or many or one .. "s")
end

--- "step 3", "steps 3 and 4", "steps 3, 4, 5, 6 and 8 more".
function M.steps_text(steps)
  if #steps == 1 then return fmt("step %d", steps[1]) end
  local shown = {}
  for i = 1, math.min(#steps, 4) do shown[i] = fmt("%d", steps[i]) end
  local rest = #steps > 4 and fmt("%d more", #steps - 4) or table.remove(shown)
  return fmt("steps %s and %s", table.concat(shown, ", "), rest)
end

--- Node names of a list, the first few.
function M.some(list)
  local shown = {}
  for i = 1, math.min(#list, 4) do shown[i] = list[i] end
  if #list > 4 then shown[5] = fmt("and %d more", #list - 4) end
  return table.concat(shown, ", ")
end

return M
