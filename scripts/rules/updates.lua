--- What the optimizer does to the weights: too much, too little, nothing.
local rule = require "msdbg.rule"
local training = require "msdbg.training"

local format, max, sqrt = string.format, math.max, math.sqrt
local nan = 0 / 0

--- Parameters that an optimizer updates, of two and more dimensions. Biases and scales are left out: they start at or near zero, so
-- that their first updates are large relative to them in any training.
local matrices = training.once(function(s)
  local list = {}
  for _, node in ipairs((training.weights(s))) do
    local shape = node.outputs[1] and node.outputs[1].shape
    if not shape or #shape >= 2 then list[#list + 1] = node end
  end
  return #list > 0 and s:nodes(list) or nil
end)

--- How many updates are between two values.
local function updates_between(ctx, t, before)
  if before.step == t.step then return 1 end
  ctx.state.between = ctx.state.between or training.updates_between(ctx.session)
  return ctx.state.between(t, before)
end

--- The weight before its update. Parameters are dumped after it: in the first step, the value that the forward pass took is used.
--- Results as of training.previous.
local function before_update(ctx, t)
  local before, unread = training.previous_of(ctx, t)
  if before or unread then return before, unread end
  ctx.state.before = ctx.state.before or training.before_updates(ctx.session)
  local taken = ctx.state.before(t)
  for _, user in ipairs(taken and t.node.users or {}) do
    -- FTRL computes weights from sums of gradients: its first update replaces the initial ones.
    if user.node.op:find "Ftrl" then return nil end
  end
  return taken
end

--- A tenth of the usual initial size of a weight, which is 1 / sqrt(inputs of a unit).
local function tiny(t)
  local inputs = 1
  for i = 2, #t.shape do inputs = inputs * t.shape[i] end
  return 0.1 / sqrt(max(inputs, 1))
end

local function in_updates(n, least)
  return n == 1 and "one step" or format("%d steps, at least %.3g times in one of them", n, least)
end

--- A weight in step 0 and in a later one, with nothing dumped between.
local function apart(name, step, value, expect)
  return { name = name, expect = expect, steps = { { x = { { 1, -1 } } }, { step = step, x = { { value, -value } } } } }
end

--- A step whose forward pass took the weight at 1.
local function first_step(name, after, expect)
  return { name = name, select = true, expect = expect, tensors = {
    { node = "fc1.weight", op = "Parameter", trainable = true, x = { { after, -after } } },
    { node = "Default/fc1-Dense/MatMul-op0", op = "MatMul", inputs = { "fc1.weight" }, x = { { 0, 0 } } },
    { node = "Default/fc1-Dense/MatMul-op0", op = "MatMul", slot = "input:0", inputs = { "fc1.weight" }, x = { { 1, -1 } } },
    { node = "Default/optimizer-SGD/SGD-op2", op = "SGD", inputs = { "fc1.weight" }, x = { { 0, 0 } } } } }
end

local too_large = rule {
  name     = "update-too-large",
  summary  = "one update moved a weight too far",
  tags     = { "weight", "update", "default" },
  severity = "error",
  select   = matrices,
  needs    = { "elements", "abs_mean" },
  params   = {
    -- A thousandth is usual and a hundredth is much; Adam with 1e-3 on small weights begins with about 0.05. From 0.3 on, a few steps
    -- replace what was learned.
    limit = { type = "number", default = 0.3, min = 0, help = "mean change / mean magnitude before the update" },
    -- Weights that start at zero (adapters, last layers of a branch, biases of items) are tiny at first and may double.
    least = { type = "number", default = 1e-3, min = 0,
      help = "weights with a smaller mean magnitude before are left alone, and those below 0.1 / sqrt(inputs of a unit)" },
  },
  check    = function(t, p, ctx)
    local before, unread = before_update(ctx, t)
    if not before or before.size ~= t.size then return unread end
    local magnitude = before.stats.abs_mean
    if not magnitude or magnitude < max(p.least, tiny(t)) then return nil end
    local ratio = t:change_ratio(before)
    if not ratio or ratio <= p.limit then return nil end
    -- Of several updates, one at least is as large as this.
    local n = updates_between(ctx, t, before)
    local least = training.least_ratio(ratio, n)
    if least > p.limit then
      return { actual = least, message = format("changed by %.3g times its mean magnitude in %s", ratio, in_updates(n, least)) }
    end
  end,
  cause    = "The learning rate is too high or not warmed up, the gradient explodes, or the gradients were not unscaled.",
  next     = "Compare the ratios of the layers: if all are high, suspect the learning rate; if one is, its gradient "
           .. "(exploding-gradient). Typical ratios are near 1e-3.",
  cases    = {
    { name = "half of it", x = { { 1.5, -1.5 } }, prev = { { 1, -1 } }, expect = "hit" },
    { name = "a thousandth", x = { { 1.001, -1 } }, prev = { { 1, -1 } }, expect = "clean" },
    { name = "from zero", x = { { 0.1, 0.1 } }, prev = { { 0, 0 } }, expect = "clean" },
    { name = "first step", x = { { 1, 2 } }, expect = "clean" },
    { name = "two steps", steps = { { x = { { 1, 1 } } }, { x = { { 5, 1 } } } }, expect = "hit" },
    { name = "an adapter that starts at zero", steps = { { x = { { 0.01, -0.01 } } }, { x = { { 0.02, -0.02 } } } }, expect = "clean" },
    first_step("in the first step", 1.5, "hit"),
    first_step("a little in the first step", 1.001, "clean"),
    -- Dumped every 50 steps: 4 times its size in 50 updates is 3 % each.
    apart("a little in each of 50 steps", 50, 5, "clean"),
    apart("without limit in 50 steps", 50, 1e20, "hit"),
    { name = "empty", x = { {} }, prev = { {} }, expect = "clean" },
  },
}

local too_small = rule {
  name     = "update-too-small",
  summary  = "one update hardly moved a weight",
  tags     = { "weight", "update" },
  severity = "info",
  select   = matrices,
  needs    = { "elements" },
  params   = {
    -- A thousandth of the usual 1e-3: at this rate a weight needs a million steps to change by its own size. Usual at the end of a
    -- schedule, hence not default.
    limit = { type = "number", default = 1e-6, min = 0, help = "mean change / mean magnitude before the update" },
  },
  check    = function(t, p, ctx)
    if t.size == 0 then return nil end
    local before, unread = training.previous_of(ctx, t)
    if not before or before.size ~= t.size then return unread or { not_checked = "no previous step" } end
    -- Over several updates the sum says less than each of them, but it says it of all.
    local ratio = t:change_ratio(before)
    if ratio and ratio < p.limit then
      local n = updates_between(ctx, t, before)
      return { actual = ratio, message = format("changed by %.3g times its mean magnitude in %s", ratio,
        n == 1 and "one step" or format("%d steps", n)) }
    end
  end,
  cause    = "A learning rate that is too low for this layer or has decayed to nothing, a vanishing gradient, or an update lost in "
           .. "the rounding of a half-precision weight.",
  next     = "Look at the schedule and at vanishing-gradient; keep master weights in float32.",
  cases    = {
    { name = "nothing", x = { { 1, 2 } }, prev = { { 1, 2 } }, expect = "hit" },
    { name = "a ten-millionth", x = { { 1.0000001, 2 } }, prev = { { 1, 2 } }, dtype = "float64", expect = "hit" },
    { name = "a thousandth", x = { { 1.001, 2 } }, prev = { { 1, 2 } }, expect = "clean" },
    { name = "first step", x = { { 1, 2 } }, expect = "not checked" },
    { name = "empty", x = { {} }, prev = { {} }, expect = "clean" },
  },
}

local function pair(first, second)
  return { tensors = {
    { node = "fc1.weight", op = "Parameter", x = { { first, 2 } } }, { node = "fc2.weight", op = "Parameter", x = { { second, 2 } } } } }
end

--- Bit for bit. Equal tensors have equal statistics, which are there already: elements are read only where those agree.
local function unchanged_since(t, before)
  local now, earlier = t.stats, before.stats
  if now.l2_norm ~= earlier.l2_norm or now.mean ~= earlier.mean or now.max ~= earlier.max then return false end
  return t:eval "all(x == prev)"
end

--- How many steps before this one left all of these weights as they were, where the check did not begin with the first step.
local function still_before(weights, most, may_be_updated)
  local least = most
  for _, t in ipairs(weights) do
    local n, now = 0, training.previous(t)
    local before = now and training.previous(now)
    while n < most and before and before.size == now.size and unchanged_since(now, before) do
      n, now, before = n + (may_be_updated(now, before) and 1 or 0), before, training.previous(before)
    end
    least = math.min(least, n)
  end
  return math.min(least, most - 1)
end

--- True where the gradients of the step overflowed and the loss scale kept them from the weights.
local function left_out(ctx)
  if not ctx.state.skips then
    ctx.state.skips = {}
    for _, skip in ipairs((training.loss_scale_skips(ctx.session))) do ctx.state.skips[skip.rank .. " " .. skip.step] = true end
  end
  return ctx.state.skips[ctx.rank .. " " .. ctx.step]
end

local function has_gradient(t)
  local node, slot = t.node:gradient()
  local kind, index = (slot or ""):match "^(%a+):(%d+)$"
  if not kind then return false end
  local gradient = node[kind](node, tonumber(index), { step = t.step })
  local size = gradient and not gradient.problem and gradient.step == t.step and gradient.stats.abs_mean
  return size ~= nil and size ~= false and size > 0
end

--- Weights of one optimizer are compared with each other: where some move and others do not, those are the finding.
local unchanged = rule {
  name     = "unchanged-weight",
  summary  = "the optimizer does not change a weight",
  tags     = { "weight", "update", "default" },
  severity = "warning",
  select   = matrices,
  needs    = { "elements", "abs_mean" },
  params   = {
    -- A step that is skipped because its gradients overflowed leaves all weights as they are, which is right. Where a loss scale
    -- shows it, such steps do not count; otherwise twice in a row without any change is not right.
    steps = { type = "integer", default = 2, min = 1, help = "steps in a row without any change of any weight that are a hit" },
  },
  check    = function(t, _, ctx)
    local before, unread = training.previous_of(ctx, t)
    if not before or before.size ~= t.size or t.size == 0 then return unread end
    ctx.state.updated = ctx.state.updated or training.may_be_updated(ctx.session)
    if not ctx.state.updated(t, before) then return nil end
    -- Without a tolerance: any update that is applied changes some element of a matrix.
    local group = format("%d %d", t.rank, t.node.graph_id)
    ctx.state.now = ctx.state.now or {}
    local now = ctx.state.now[group] or { same = {}, moved = 0, name = group, from = before.step }
    ctx.state.now[group] = now
    if unchanged_since(t, before) then now.same[#now.same + 1] = t else now.moved = now.moved + 1 end
  end,
  step_end = function(_, p, ctx)
    local found, names = {}, {}
    local now = ctx.state.now or {}
    for name in pairs(now) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      local group = now[name]
      if group.moved > 0 then
        ctx.state[name] = 0
        for _, t in ipairs(group.same) do
          found[#found + 1] = { tensor = t, actual = 0,
            message = "unchanged while other weights of the optimizer moved" .. (has_gradient(t) and "; its gradient is not zero" or "") }
        end
      elseif #group.same > 0 and not left_out(ctx) then
        local still = (ctx.state[name] or still_before(group.same, p.steps, ctx.state.updated)) + 1
        ctx.state[name] = still
        if still == 1 then ctx.state.since = group.from end
        -- Once, when it is certain, and for one weight: the others say the same.
        if still == p.steps then
          local last = group.same[1]
          found[#found + 1] = { tensor = last, actual = 0,
            message = format("no weight changed between steps %d and %d", ctx.state.since or group.from, last.step) }
        end
      end
    end
    ctx.state.now = nil
    return found
  end,
  cause    = "The gradient of the weight is zero (a dead activation, an unused branch, stop_gradient), its learning rate is zero, or "
           .. "the update is lost in rounding: in float16, adding 1e-4 to 1 changes nothing.",
  next     = "Look at the gradient with zero-gradient; check the learning rate of its parameter group; keep master weights in "
           .. "float32. A weight that is frozen on purpose does not belong in the optimizer.",
  cases    = {
    { name = "nothing moves", steps = {
      { x = { { 1, 2 } } }, { x = { { 1, 2 } } }, { x = { { 1, 2 } } } }, expect = "hit" },
    { name = "one skipped step", steps = {
      { x = { { 1, 2 } } }, { x = { { 1, 2 } } }, { x = { { 1, 3 } } } }, expect = "clean" },
    { name = "one of two moves", steps = { pair(1, 1), pair(1, 2) }, expect = "hit", hits = 1, hit_steps = { 1 } },
    { name = "both move", steps = { pair(1, 1), pair(2, 2) }, expect = "clean" },
    { name = "a weight without optimizer", select = true, steps = { pair(1, 1), pair(1, 2) }, expect = "clean" },
    { name = "one skipped step, wanted", x = { { 1, 2 } }, prev = { { 1, 2 } }, params = { steps = 1 }, expect = "hit" },
    { name = "moves", steps = { { x = { { 1, 2 } } }, { x = { { 1, 2.1 } } } }, expect = "clean" },
    { name = "one step only", x = { { 1, 2 } }, expect = "clean" },
    { name = "NaN is not rest", x = { { nan, 2 } }, prev = { { nan, 2 } }, params = { steps = 1 }, expect = "clean" },
    { name = "empty", x = { {} }, prev = { {} }, params = { steps = 1 }, expect = "clean" },
  },
}

return { too_large, too_small, unchanged }
