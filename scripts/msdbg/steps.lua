-- Statistics over steps: how a statistic of one tensor changes during a run, where it jumps, and what correlates with it.
--
--   local steps = require "msdbg.steps"
--   local series = steps.series(s, "conv1.weight", "abs_mean")
--   print(steps.change_point(series.values).step, steps.mean(series.values))
local core = require "msdbg.core"
local formats = require "msdbg.format"
local options = require "msdbg.options"

local abs, floor, format, max, sqrt = math.abs, math.floor, formats.line, math.max, math.sqrt
local error, ipairs, pcall, setmetatable, tostring, type = error, ipairs, pcall, setmetatable, tostring, type

local M = {}

local HUGE = math.huge

-- Finite numbers; other elements remain gaps.
local function usable(value) return type(value) == "number" and value == value and value ~= HUGE and value ~= -HUGE end

local function check_list(call, values)
  if type(values) ~= "table" then core.raise("invalid_argument", call .. ": a list of numbers is expected, not a " .. type(values)) end
  return values
end

local function stats_of(t) return t.stats end

-- A missing or non-numeric value is a gap, not the end of the series.
local function attempt(fn, ...)
  local ok, value = pcall(fn, ...)
  if ok then return value end
  if type(value) == "table" and value.code == "interrupted" then error(value, 0) end
  return nil, type(value) == "table" and value.message or tostring(value)
end

local Series = {}
Series.__index = Series
function Series:__tostring()
  local parts = {}
  for i, step in ipairs(self.steps) do
    parts[i] = format("%d: %s", step, self.values[i] and core.short_number(self.values[i], 4) or "-")
  end
  return format("%s of %s\n%s", self.stat, self.name, table.concat(parts, "  "))
end

--- A statistic of one tensor in every step that has it. `values[i]` belongs to `steps[i]`; false if the step has no such value,
--- with the reason in `missing[i]`. `stat` is a field of the statistics, "change" for the change ratio relative to the previous
--- step, or a function of the tensor.
---@param session msdbg.Session
---@param name string|msdbg.Node  a tensor, or a parameter
---@param stat? string|fun(t: msdbg.Tensor): number?
---@param given? { steps?: msdbg.Numbers, rank?: integer, graph?: integer }
---@return msdbg.Series
function M.series(session, name, stat, given)
  local o = options.check("steps.series", given, { steps = "any", rank = "number", graph = "number" })
  stat = stat or "abs_mean"
  if core.class_of(session) ~= "session" then core.raise("invalid_argument", "steps.series: a session is expected first") end
  local node = core.class_of(name) == "node" and name
  local rank, graph = o.rank, o.graph
  if node then name, rank, graph = node.name, rank or node.rank, graph or node.graph_id end
  local all = o.steps == nil
  local made = setmetatable(
    { name = name, stat = type(stat) == "string" and stat or "value", steps = {}, values = {}, missing = {} }, Series)
  for _, step in ipairs(session.steps) do
    if all or core.number_in(o.steps, step, "steps.series: option 'steps'") then
      local t, why = session:tensor(name, { step = step, rank = rank, graph = graph })
      local value
      if t and type(stat) == "function" then
        value = stat(t)
        why = value == nil and "the function returned nothing" or nil
      elseif t and stat == "change" then
        local before
        before, why = t:previous()
        if before then value, why = attempt(t.change_ratio, t, before) end
        why = value == nil and (why or "no element is finite in both steps") or nil
      elseif t then
        local stats
        stats, why = attempt(stats_of, t)
        if stats then value = stats[stat] end
        why = value == nil and (why or "the tensor has no such statistic") or nil
      end
      local at = #made.steps + 1
      if type(value) ~= "number" then value = false end
      made.steps[at], made.values[at], made.missing[at] = step, value, not value and why or false
    end
  end
  return made
end

--- Arithmetic mean of the finite elements; nil without any, like all of the following.
---@param values (number|false)[]
---@return number?
function M.mean(values)
  local sum, n = 0, 0
  for i = 1, #check_list("steps.mean", values) do
    if usable(values[i]) then sum, n = sum + values[i], n + 1 end
  end
  if n > 0 then return sum / n end
end

--- Sample standard deviation (n - 1); 0 for one element.
---@param values (number|false)[]
---@return number?
function M.std(values)
  local mean, sum, n = M.mean(values), 0, 0
  if not mean then return nil end
  for i = 1, #values do
    if usable(values[i]) then sum, n = sum + (values[i] - mean) ^ 2, n + 1 end
  end
  return n > 1 and sqrt(sum / (n - 1)) or 0
end

--- Interpolates as in NumPy's default.
---@param values (number|false)[]
---@param q number  0 to 1
---@return number?
function M.quantile(values, q)
  if type(q) ~= "number" or not (q >= 0 and q <= 1) then
    core.raise("invalid_argument", "steps.quantile: q: 0 to 1 is expected, not " .. tostring(q))
  end
  local sorted = {}
  for i = 1, #check_list("steps.quantile", values) do
    if usable(values[i]) then sorted[#sorted + 1] = values[i] end
  end
  if #sorted == 0 then return nil end
  table.sort(sorted)
  local place = q * (#sorted - 1)
  local low = floor(place) + 1
  local above = sorted[low + 1] or sorted[low]
  return sorted[low] + (above - sorted[low]) * (place - low + 1)
end

---@param values (number|false)[]
---@return number?
function M.median(values) return M.quantile(values, 0.5) end

--- The mean of each element and up to `width - 1` before it; false if none of them is finite.
---@param values (number|false)[]
---@param width integer
---@return (number|false)[]
function M.moving_mean(values, width)
  if type(width) ~= "number" or width < 1 or width % 1 ~= 0 then
    core.raise("invalid_argument", "steps.moving_mean: width: 1 or more is expected, not " .. tostring(width))
  end
  local out = {}
  for i = 1, #check_list("steps.moving_mean", values) do
    local sum, n = 0, 0
    for j = max(1, i - width + 1), i do
      if usable(values[j]) then sum, n = sum + values[j], n + 1 end
    end
    out[i] = n > 0 and sum / n
  end
  return out
end

--- Pearson's correlation over the positions where both are finite; nil with fewer than three, or if one of them is constant.
---@param a (number|false)[]
---@param b (number|false)[]
---@return number?
function M.correlation(a, b)
  local xs, ys = {}, {}
  for i = 1, math.min(#check_list("steps.correlation", a), #check_list("steps.correlation", b)) do
    if usable(a[i]) and usable(b[i]) then xs[#xs + 1], ys[#ys + 1] = a[i], b[i] end
  end
  if #xs < 3 then return nil end
  local mx, my, sxy, sxx, syy = M.mean(xs), M.mean(ys), 0, 0, 0
  for i = 1, #xs do
    local dx, dy = xs[i] - mx, ys[i] - my
    sxy, sxx, syy = sxy + dx * dy, sxx + dx * dx, syy + dy * dy
  end
  if sxx == 0 or syy == 0 then return nil end
  return sxy / sqrt(sxx) / sqrt(syy)
end

--- Slope of the least-squares line, per step (or per position without `at`).
---@param values (number|false)[]
---@param at? number[]  positions of the values, e.g. series.steps
---@return number?
function M.slope(values, at)
  local xs, ys = {}, {}
  for i = 1, #check_list("steps.slope", values) do
    if usable(values[i]) then xs[#xs + 1], ys[#ys + 1] = at and at[i] or i, values[i] end
  end
  if #xs < 2 then return nil end
  local mx, my, sxy, sxx = M.mean(xs), M.mean(ys), 0, 0
  for i = 1, #xs do sxy, sxx = sxy + (xs[i] - mx) * (ys[i] - my), sxx + (xs[i] - mx) ^ 2 end
  if sxx > 0 then return sxy / sxx end
end

-- Finds the split with the least squares around the two means. Prefix sums make it linear.
local function best_split(numbers)
  local sum, n = 0, #numbers
  for _, value in ipairs(numbers) do sum = sum + value end
  local left, best, gain = 0, nil, -1
  for i = 1, n - 1 do
    left = left + numbers[i]
    local difference = left / i - (sum - left) / (n - i)
    local here = difference * difference * i * (n - i) / n
    if here > gain then best, gain = i, here end
  end
  return best, gain
end

--- The first jump: where two levels fit the values best. `index` is the first element of the new level, `before` and `after` are
--- the means, `score` is their distance in standard deviations within the levels (math.huge if they are constant). nil with fewer
--- than four finite elements, or if the score is below `least` (default 3).
---@param values (number|false)[]
---@param given? { least?: number, steps?: integer[] }
---@return { index: integer, step: integer?, before: number, after: number, score: number }?
function M.change_point(values, given)
  local o = options.check("steps.change_point", given, { least = "number", steps = "table" })
  local numbers, places, total = {}, {}, 0
  for i = 1, #check_list("steps.change_point", values) do
    if usable(values[i]) then numbers[#numbers + 1], places[#places + 1] = values[i], i end
  end
  local n = #numbers
  if n < 4 then return nil end
  local mean = M.mean(numbers)
  for _, value in ipairs(numbers) do total = total + (value - mean) ^ 2 end
  local at, gain = best_split(numbers)
  if total == 0 then return nil end
  local before, after = 0, 0
  for i = 1, at do before = before + numbers[i] / at end
  for i = at + 1, n do after = after + numbers[i] / (n - at) end
  -- The rounding error of an exact fit is not a deviation.
  local rest = total - gain
  local spread = rest > 1e-20 * total and sqrt(rest / (n - 2)) or 0
  local score = spread > 0 and abs(after - before) / spread or HUGE
  if score < (o.least or 3) then return nil end
  local index = places[at + 1]
  return { index = index, step = o.steps and o.steps[index], before = before, after = after, score = score }
end

return M
