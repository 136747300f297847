-- What the chapters of the guide share: nodes, values and short texts.
local fmt, ipairs, pcall = string.format, ipairs, pcall

local M = {}

--- Nodes of a selector; an empty list where the network has none.
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

--- Mean change against `before`; nil where elements are missing (a dump of statistics only).
function M.change(now, before)
  local ok, ratio = pcall(now.change_ratio, now, before)
  return ok and ratio or nil
end

--- The end of a node's name that still says which one it is, so that it can be typed.
function M.short(s, name)
  local tail = name:match "[^/]+/[^/]+$"
  return tail and tail ~= name and pcall(s.node, s, tail) and tail or name
end

function M.count(n, one, many)
  return fmt("%d %s", n, n == 1 and one or many or one .. "s")
end

--- Keeps for each name the place where a number is worst: worst{ add(name, number, step) }, :list(format).
function M.worst()
  local names, found = {}, {}
  return {
    found = found,
    add = function(name, number, step, above)
      if not found[name] then names[#names + 1] = name end
      local before = found[name] and found[name][1]
      if not before or above and number > before or not above and number < before then found[name] = { number, step } end
    end,
    list = function(template)
      local words = {}
      for i, name in ipairs(names) do words[i] = fmt(template, name, found[name][1], found[name][2]) end
      return words
    end,
  }
end

--- Node names of a list, the first few.
function M.some(list)
  local shown = {}
  for i = 1, math.min(#list, 4) do shown[i] = list[i] end
  if #list > 4 then shown[5] = fmt("and %d more", #list - 4) end
  return table.concat(shown, ", ")
end

return M
