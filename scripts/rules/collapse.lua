--- Values that no longer depend on the sample: equal rows in the output, nearly equal ones in a layer.
local rule = require "msdbg.rule"
local training = require "msdbg.training"

local abs, format, max, min, sqrt = math.abs, string.format, math.max, math.min, math.sqrt
local nan = 0 / 0

-- Larger matrices would take too long in Lua.
local MOST = 4e6

--- The predictions that go into the losses: one row for each sample.
local function predictions(s)
  local list, seen = {}, {}
  for loss in s:nodes("@loss", { optional = true }):each() do
    local input = loss.inputs[1]
    local from = input and input.node
    local key = from and format("%d %d %s", from.rank, from.graph_id, from.name)
    if from and from.kind == "operator" and not seen[key] and loss.op:find "CrossEntropy" then
      seen[key], list[#list + 1] = true, from
    end
  end
  return #list > 0 and s:nodes(list) or nil
end

--- The largest distance between two rows, and the largest element.
local function spread(t)
  local n, c, v = t.shape[1], t.shape[2], t:view():doubles()
  local far, size = 0, 0
  for k = 0, c - 1 do
    local low, high = math.huge, -math.huge
    for i = 0, n - 1 do
      local x = v[i * c + k]
      low, high = min(low, x), max(high, x)
    end
    far, size = max(far, high - low), max(size, abs(low), abs(high))
  end
  return far, size
end

--- In how many dumped steps in a row `holds` has been true of this matrix; steps before those of the check count as well.
local function steps_in_a_row(t, p, ctx, holds)
  local function fits(value)
    return not value.problem and #value.shape == 2 and value.shape[1] >= p.least and value.size <= MOST and holds(value)
  end
  local key = format("%d %d %s %d", t.rank, t.node.graph_id, t.name, t.execution)
  local count = ctx.state[key]
  if not count then
    local earlier = training.earlier(t, p.steps - 1)
    -- Too few steps for a finding, and a dump shows those before at any time: nothing is read.
    if #earlier < p.steps - 1 and ctx.session.info.kind == "dump" then return 0 end
    count = 0
    for _, before in ipairs(earlier) do
      if not fits(before) then break end
      count = count + 1
    end
  end
  count = fits(t) and count + 1 or 0
  ctx.state[key] = count
  return count
end

local function rows(name, expect, ...)
  local case = { name = name, expect = expect, steps = {} }
  for i, x in ipairs { ... } do case.steps[i] = { x = x } end
  return case
end

local equal_outputs = rule {
  name     = "equal-outputs",
  summary  = "the output is the same for every sample of the batch",
  tags     = { "loss", "learning", "default" },
  severity = "warning",
  select   = predictions,
  needs    = { "elements" },
  params   = {
    -- A last layer that starts at zero gives equal rows in the first step only.
    steps = { type = "integer", default = 2, min = 1, help = "dumped steps in a row that make a finding" },
    -- Sums in another order differ by that much.
    tolerance = { type = "number", default = 1e-6, min = 0, help = "distance of the rows / largest element" },
    least = { type = "integer", default = 4, min = 2, help = "smallest batch that is judged" },
  },
  check    = function(t, p, ctx)
    local count = steps_in_a_row(t, p, ctx, function(value)
      local far, size = spread(value)
      return far <= p.tolerance * size
    end)
    if count == p.steps then
      return { actual = 0, message = format("all %d rows are equal, in %d dumped steps in a row", t.shape[1], count) }
    end
  end,
  cause    = "The input no longer reaches the output: a layer is dead, saturated or constant, or every sample has the same input. The "
           .. "network learns only how frequent each label is.",
  next     = "Follow the layers from the input to the first one with equal rows (show NODE), and look at its weights and activation.",
  cases    = {
    rows("equal in two steps", "hit", { { 1, 2 }, { 1, 2 }, { 1, 2 }, { 1, 2 } }, { { 3, 2 }, { 3, 2 }, { 3, 2 }, { 3, 2 } }),
    rows("equal in the first step", "clean", { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 } }, { { 3, 2 }, { 3, 2.1 }, { 3, 2 }, { 3, 2 } }),
    rows("different", "clean", { { 1, 2 }, { 1, 3 }, { 1, 2 }, { 1, 2 } }, { { 3, 2 }, { 1, 2 }, { 3, 2 }, { 3, 2 } }),
    rows("few samples", "clean", { { 1, 2 }, { 1, 2 } }, { { 1, 2 }, { 1, 2 } }),
    rows("NaN", "clean", { { nan, 1 }, { nan, 1 }, { nan, 1 }, { nan, 2 } }, { { nan, 1 }, { nan, 1 }, { nan, 1 }, { nan, 2 } }),
  },
}

--- The largest distance of a row from the mean row, and the length of the mean row. A row of NaN is no distance.
local function spread_of_rows(t)
  local n, c, v = t.shape[1], t.shape[2], t:view():doubles()
  local mean, length, far = {}, 0, 0
  for k = 0, c - 1 do
    local sum = 0
    for i = 0, n - 1 do sum = sum + v[i * c + k] end
    mean[k] = sum / n
    length = length + mean[k] * mean[k]
  end
  for i = 0, n - 1 do
    local distance = 0
    for k = 0, c - 1 do
      local d = v[i * c + k] - mean[k]
      distance = distance + d * d
    end
    far = max(far, distance)
  end
  return sqrt(far), sqrt(length)
end

local collapsed = rule {
  name     = "collapsed-layer",
  summary  = "a layer gives nearly the same for every sample",
  tags     = { "activation", "learning" },
  -- Only a hint: a batch of nearly equal samples looks the same.
  severity = "info",
  select   = "@activation or (op:MatMul and not @gradient) or (op:MatMulBiasAdd* and not @gradient)",
  needs    = { "elements" },
  params   = {
    -- Healthy networks, untrained ones too, are at 0.05 and more; five sigmoid layers in a row at 1e-4.
    limit = { type = "number", default = 1e-3, min = 0, help = "largest distance from the mean row / length of the mean row" },
    steps = { type = "integer", default = 2, min = 1, help = "dumped steps in a row that make a finding" },
    least = { type = "integer", default = 4, min = 2, help = "smallest batch that is judged" },
  },
  check    = function(t, p, ctx)
    local ratio
    local count = steps_in_a_row(t, p, ctx, function(value)
      if value.shape[2] < 2 then return false end
      local far, length = spread_of_rows(value)
      ratio = far / length
      -- All zero is dead-relu's; equal rows may be, too.
      return length > 0 and length < math.huge and far <= p.limit * length
    end)
    -- The layers behind it say the same.
    local place = format("%d %d", t.rank, t.node.graph_id)
    ctx.state.told = ctx.state.told or {}
    if count < p.steps or ctx.state.told[place] then return nil end
    ctx.state.told[place] = true
    return { actual = ratio, message = format("its rows differ by %.2g of their length, in %d dumped steps in a row", ratio, count) }
  end,
  cause    = "Each layer before it kept less of what distinguishes the samples: saturating activations in a row, weights that are "
           .. "too small, a bias that outweighs the input, or inputs that are not normalised.",
  next     = "Normalise the inputs; use ReLU or GELU, larger initial weights, or a normalisation layer before this one.",
  cases    = {
    rows("nearly equal in two steps", "hit", { { 1, 2 }, { 1, 2.0001 }, { 1, 2 }, { 1, 2 } },
      { { 3, 2 }, { 3, 2 }, { 3.0001, 2 }, { 3, 2 } }),
    rows("in one step only", "clean", { { 1, 2 }, { 1, 2.0001 }, { 1, 2 }, { 1, 2 } }, { { 3, 2 }, { 1, 2 }, { 3, 2 }, { 3, 2 } }),
    rows("different", "clean", { { 1, 2 }, { 1, 2.1 }, { 1, 2 }, { 1, 2 } }, { { 3, 2 }, { 3.1, 2 }, { 3, 2 }, { 3, 2 } }),
    rows("all zero", "clean", { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 } }, { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 } }),
    rows("one column", "clean", { { 1 }, { 1 }, { 1 }, { 1 } }, { { 1 }, { 1 }, { 1 }, { 1 } }),
    rows("few samples", "clean", { { 1, 2 }, { 1, 2 } }, { { 1, 2 }, { 1, 2 } }),
    rows("Inf", "clean", { { math.huge, 1 }, { 1, 1 }, { 1, 1 }, { 1, 2 } }, { { math.huge, 1 }, { 1, 1 }, { 1, 1 }, { 1, 2 } }),
    rows("NaN", "clean", { { nan, 1 }, { nan, 1 }, { nan, 1 }, { nan, 2 } }, { { nan, 1 }, { nan, 1 }, { nan, 1 }, { nan, 2 } }),
  },
}

return { equal_outputs, collapsed }
