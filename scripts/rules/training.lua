--- The run as a whole: the loss, the data, and the step in which values left their usual range.
local rule = require "msdbg.rule"
local training = require "msdbg.training"

local abs, floor, format, max, min = math.abs, math.floor, string.format, math.max, math.min

local function group_of(t) return format("%d %d", t.rank, t.node.graph_id) end

local function sorted_keys(map)
  local names = {}
  for name in pairs(map or {}) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function steps_of(n, value)
  local list = {}
  for i = 1, n do list[i] = { x = { value(i) }, shape = {} } end
  return list
end

--- The loss of a step is the last single number that the loss operators of a graph compute; a reduction over the batch comes after
-- the losses of the samples.
local function keep_loss(t, _, ctx)
  if t.size ~= 1 or not t.dtype:find "float" then return nil end
  local value = t.stats.mean  -- nil for NaN and Inf, which are found by other rules
  ctx.state.now = ctx.state.now or {}
  ctx.state.now[group_of(t)] = value and { tensor = t, value = value } or nil
end

--- The largest loss of earlier steps, where the check did not begin with the first one.
local function largest_before(t)
  local largest
  for _, before in ipairs(training.earlier(t, 100)) do
    local value = before.size == 1 and before.stats.mean
    if value then largest = max(largest or value, value) end
  end
  return largest
end

local explosion = rule {
  name     = "loss-explosion",
  summary  = "the loss is far above anything before",
  tags     = { "loss", "default" },
  severity = "error",
  select   = "@loss",
  needs    = { "mean" },
  params   = {
    -- Bad batches double or triple a loss; ten times the largest so far is another regime.
    factor = { type = "number", default = 10, min = 1, help = "loss / largest loss of the steps before" },
    -- Guessing between two classes costs ln 2 = 0.69: a loss that rises from 0.01 to 0.2 met a hard batch, nothing exploded.
    least = { type = "number", default = 1, min = 0, help = "smaller losses are left alone" },
  },
  check    = keep_loss,
  step_end = function(_, p, ctx)
    local found, now = {}, ctx.state.now
    for _, group in ipairs(sorted_keys(now)) do
      local t, value = now[group].tensor, now[group].value
      local before = ctx.state[group] or largest_before(t)
      if before and before > 0 and value > p.least and value > p.factor * before then
        found[#found + 1] = { tensor = t, actual = value, message = format("loss %.6g after at most %.6g", value, before) }
      end
      ctx.state[group] = max(before or value, value)
    end
    ctx.state.now = nil
    return found
  end,
  cause    = "The last update was far too large (learning rate, missing warm-up, exploding gradient), or the batch has wrong labels "
           .. "or values.",
  next     = "Look at the update of the previous step with update-too-large and at the batch of this step; lower the learning rate.",
  cases    = {
    { name = "2.3 to 30", steps = steps_of(2, function(i) return i == 1 and 2.3 or 30 end), expect = "hit" },
    { name = "noise", steps = steps_of(6, function(i) return 2 + i % 3 end), expect = "clean" },
    { name = "a hard batch late", steps = steps_of(2, function(i) return i == 1 and 0.01 or 0.3 end), expect = "clean" },
    { name = "negative losses", steps = steps_of(2, function(i) return i == 1 and -5 or 30 end), expect = "clean" },
    { name = "one step only", x = { 1e9 }, shape = {}, expect = "clean" },
    { name = "NaN between", steps = steps_of(3, function(i) return i == 2 and 0 / 0 or 2 end), expect = "clean" },
    { name = "losses of samples", steps = { { x = { 1, 1 } }, { x = { 100, 100 } } }, expect = "clean" },
  },
}

local flat = rule {
  name     = "loss-not-decreasing",
  summary  = "the loss has not fallen since the beginning",
  tags     = { "loss", "default" },
  severity = "warning",
  select   = "@loss",
  needs    = { "mean" },
  params   = {
    -- With fewer steps the noise of the batches and a warm-up hide any progress.
    least = { type = "integer", default = 50, min = 4, help = "steps with a loss that are needed" },
    -- Two runs that differ in nothing but the order of sums differ by a tenth of this.
    fall = { type = "number", default = 1, min = 0, max = 100, unit = "%", help = "the last quarter must be lower by this" },
    -- Later in a training a flat loss is what one hopes for.
    from = { type = "integer", default = 1, min = 0, help = "latest first step of a dump that is judged" },
  },
  check    = keep_loss,
  step_end = function(_, _, ctx)
    local now = ctx.state.now
    for _, group in ipairs(sorted_keys(now)) do
      local t, value = now[group].tensor, now[group].value
      ctx.state.losses = ctx.state.losses or {}
      local losses = ctx.state.losses[group] or { first = t.step }
      ctx.state.losses[group] = losses
      losses[#losses + 1], losses.node, losses.slot, losses.rank, losses.last = value, t.node.name, t.slot, t.rank, t.step
    end
    ctx.state.now = nil
  end,
  finish   = function(_, p, ctx)
    local found, all = {}, ctx.state.losses
    for _, group in ipairs(sorted_keys(all)) do
      local losses = all[group]
      local n, quarter = #losses, floor(#losses / 4)
      if n >= p.least and losses.first <= p.from then
        local first, last = 0, 0
        for i = 1, quarter do
          first = first + losses[i] / quarter
          last = last + losses[n + 1 - i] / quarter
        end
        local fall = 100 * (first - last) / max(abs(first), 1e-300)
        if fall < p.fall then
          found[#found + 1] = {
            node = losses.node, slot = losses.slot, rank = losses.rank, step = losses.last, actual = fall,
            message = format("mean loss %.6g in the first %d steps, %.6g in the last", first, quarter, last),
          }
        end
      end
    end
    return found
  end,
  cause    = "A learning rate that is too low or too high, weights that are not passed to the optimizer, labels that do not match the "
           .. "inputs, or a constant output.",
  next     = "Ask in this order: do the weights move (unchanged-weight, update-too-small)? does a gradient arrive (zero-gradient, "
           .. "vanishing-gradient)? can the network memorise a single batch? If it can, look at the data.",
  cases    = {
    { name = "flat", steps = steps_of(60, function(i) return 2.3 + 0.01 * (i % 2) end), expect = "hit" },
    { name = "rising", steps = steps_of(60, function(i) return 2 + i / 100 end), expect = "hit" },
    { name = "falling", steps = steps_of(60, function(i) return 2.3 - i / 100 end), expect = "clean" },
    { name = "below zero and falling", steps = steps_of(60, function(i) return -i end), expect = "clean" },
    { name = "too few steps", steps = steps_of(20, function() return 2.3 end), expect = "clean" },
    { name = "too few steps, wanted", steps = steps_of(20, function() return 2.3 end), params = { least = 8 }, expect = "hit" },
    { name = "NaN only", steps = steps_of(60, function() return 0 / 0 end), expect = "clean" },
  },
}

--- Bit for bit. Equal tensors have equal statistics, which are there already: elements are read only where those agree.
local function unchanged_since(t, before)
  local now, earlier = t.stats, before.stats
  if now.l2_norm ~= earlier.l2_norm or now.mean ~= earlier.mean or now.max ~= earlier.max then return false end
  return t:eval "all(x == prev)"
end

--- What a training graph is fed: what the program gives it, or what the input queue gives. Networks that only run forward may be fed
--- the same on purpose.
local function inputs_of_trainings(s)
  local trains = {}
  for node in s:nodes("@weight or @gradient", { optional = true }):each() do
    if node.trainable or node.kind == "operator" then trains[node.rank .. " " .. node.graph_id] = true end
  end
  local fed = training.inputs(s):union(s:nodes("op:GetNext or op:GetNextFromQueue", { optional = true }))
  return fed:filter(function(node) return trains[node.rank .. " " .. node.graph_id] end)
end

local frozen_inputs = rule {
  name     = "frozen-inputs",
  summary  = "two steps in a row were fed the same batch",
  tags     = { "data", "default" },
  severity = "warning",
  select   = inputs_of_trainings,
  needs    = { "elements", "abs_mean" },
  params   = {
    -- The labels of a small batch repeat by chance: four of ten classes with one chance in 10^4. Sixteen elements do not.
    least = { type = "integer", default = 16, min = 1, help = "elements of all inputs together that are needed" },
    steps = { type = "integer", default = 1, min = 1, help = "repetitions in a row that are a hit" },
  },
  check    = function(t, _, ctx)
    ctx.state.now = ctx.state.now or {}
    local group = group_of(t)
    local now = ctx.state.now[group] or { elements = 0, same = true }
    ctx.state.now[group] = now
    local before, unread = training.previous(t)
    -- Steps apart from each other may hold the same batch of two epochs.
    if not before or before.size ~= t.size or before.step ~= t.step - 1 or t.size == 0 then
      now.same = false
      return unread
    end
    now.elements = now.elements + t.size
    now.same = now.same and unchanged_since(t, before)
    if not now.tensor or t.size > now.tensor.size then now.tensor = t end
  end,
  step_end = function(_, p, ctx)
    local found, now = {}, ctx.state.now
    for _, group in ipairs(sorted_keys(now)) do
      local seen = now[group]
      local count = seen.same and seen.elements >= p.least and (ctx.state[group] or 0) + 1 or 0
      ctx.state[group] = count
      -- Once for each stretch of equal batches.
      if count == p.steps then
        found[#found + 1] = { tensor = seen.tensor, actual = count, message = "all inputs are equal to those of the step before" }
      end
    end
    ctx.state.now = nil
    return found
  end,
  cause    = "The data loader does not advance: a batch was fetched once outside the loop, an iterator is created again in each step, "
           .. "or a cache or shared buffer is returned.",
  next     = "Print a checksum of the batch where it is fetched. If you train on one batch on purpose, run with --param "
           .. "frozen-inputs.steps=1000000 or --rules \"default and not frozen-inputs\".",
  cases    = {
    { name = "twice", steps = { { x = { 1, 2, 3 } }, { x = { 1, 2, 3 } } }, params = { least = 3 }, expect = "hit" },
    { name = "few elements", steps = { { x = { 1, 2, 3 } }, { x = { 1, 2, 3 } } }, expect = "clean" },
    { name = "one differs", steps = { { x = { 1, 2, 3 } }, { x = { 1, 2, 4 } } }, params = { least = 3 }, expect = "clean" },
    { name = "one step only", x = { 1, 2, 3 }, params = { least = 1 }, expect = "clean" },
    { name = "two batches in turn", steps = { { x = { 1, 2 } }, { x = { 3, 4 } }, { x = { 1, 2 } } }, params = { least = 1 },
      expect = "clean" },
    { name = "empty", steps = { { x = {}, shape = { 0 } }, { x = {}, shape = { 0 } } }, params = { least = 1 }, expect = "clean" },
  },
}

--- The mean magnitude, or the least and the most that it can be where only other statistics were dumped; nil without finite values.
local function mean_magnitude(t)
  local stats, n = t.stats, t.size
  if stats.abs_mean then return stats.abs_mean, stats.abs_mean end
  local low, high, mean, norm = stats.min, stats.max, stats.mean, stats.l2_norm
  if not low or not high or n == 0 then return nil end
  local largest = max(abs(low), abs(high))
  if largest == 0 then return 0, 0 end
  local least, most = max(largest / n, abs(mean or 0)), largest
  if norm then least, most = max(least, norm / largest * (norm / n)), min(most, norm / n ^ 0.5) end
  return min(least, most), most
end

--- The range of earlier steps. Where bounds alone are known, its ends have bounds, too.
local function remember(before, least, most)
  if not most or most == 0 then return end
  before.n = before.n + 1
  before.low, before.low_most = min(before.low or least, least), min(before.low_most or most, most)
  before.high, before.high_least = max(before.high or most, most), max(before.high_least or least, least)
end

local jump = rule {
  name     = "value-jump",
  summary  = "first step in which a tensor leaves its range",
  tags     = { "change-point", "default" },
  severity = "warning",
  -- Gradients have a rule of their own (exploding-gradient): they differ more between batches.
  applies  = function(s, p)
    local steps = #s.steps
    if s.kind ~= "dump" or steps > p.history then return true end
    return format("it needs %d steps, and the dump has %d", p.history + 1, steps)
  end,
  select   = function(s)
    local data = training.inputs(s):filter(function(node) return node.outputs[1].dtype:find "^float" ~= nil end)
    local all = s:nodes("@weight or @activation", { optional = true }):union(data)
    return #all > 0 and all or nil
  end,
  needs    = { "min", "max" },
  params   = {
    -- Weights move by a thousandth in a step and activations by some percent.
    factor = { type = "number", default = 100, min = 1, help = "mean magnitude relative to the range of the previous steps" },
    history = { type = "integer", default = 2, min = 1, help = "steps before that are needed" },
    -- A loss of magnitude is a dying layer, which has rules of its own and is usual for sparse activations.
    direction = { type = "choice", choices = { "up", "down", "both" }, default = "up", help = "which jumps count" },
    -- Biases that start near zero grow a hundredfold in the first steps without harm.
    least = { type = "number", default = 1, min = 0, help = "smaller mean magnitudes are never an upward jump" },
  },
  check    = function(t, p, ctx)
    local least, most = mean_magnitude(t)
    if not most or most == 0 then return nil end
    local key = format("%d %s %d", t.rank, t.name, t.execution)
    local before = ctx.state[key]
    if not before then
      before = { n = 0 }
      ctx.state[key] = before
      -- Where the check did not begin with the first step.
      for _, earlier in ipairs(training.earlier(t, 8)) do remember(before, mean_magnitude(earlier)) end
    end
    if before.done then return nil end
    if before.n < p.history then
      remember(before, least, most)
      return nil
    end
    local up, down = least / before.high, before.low / most
    local rises, falls = p.direction ~= "down", p.direction ~= "up"
    if (rises and up > p.factor and least > p.least) or (falls and down > p.factor) then
      before.done = true  -- the first step of the jump; what follows is its consequence
      local about = least == most and "" or "at least "
      local text = format("mean magnitude %s%.4g after %.4g to %.4g in %d earlier steps", about, least, before.low, before.high, before.n)
      return { actual = max(up, down), message = text }
    end
    local may_rise = rises and most > p.factor * before.high_least and most > p.least
    local may_fall = falls and before.low_most > p.factor * least
    remember(before, least, most)
    return (may_rise or may_fall) and { not_checked = "no tensor data (the statistics do not decide it)" } or nil
  end,
  cause    = "Something happened in this step or right before it: a jump in the learning rate, a bad batch, a restored checkpoint, or "
           .. "divergence.",
  next     = "Compare this step with the previous one (msdbg stats, t:diff(t:previous())); the first tensor in execution order that "
           .. "jumped is closest to the cause.",
  cases    = {
    { name = "third step", steps = { { x = { 1, 2 } }, { x = { 1, 2.1 } }, { x = { 1000, 900 } } }, expect = "hit" },
    { name = "slow growth", steps = { { x = { 1 } }, { x = { 10 } }, { x = { 100 } }, { x = { 1000 } } }, expect = "clean" },
    { name = "second step", steps = { { x = { 1 } }, { x = { 1000 } } }, expect = "clean" },
    { name = "small values", steps = { { x = { 1e-6 } }, { x = { 1e-6 } }, { x = { 1e-2 } } }, expect = "clean" },
    { name = "downwards", steps = { { x = { 5 } }, { x = { 5 } }, { x = { 1e-3 } } }, expect = "clean" },
    { name = "downwards, wanted", steps = { { x = { 5 } }, { x = { 5 } }, { x = { 1e-3 } } }, params = { direction = "down" },
      expect = "hit" },
    { name = "one step only", x = { 1e9 }, expect = "clean" },
    { name = "NaN", steps = { { x = { 1 } }, { x = { 1 } }, { x = { 0 / 0 } } }, expect = "clean" },
    { name = "0-d", steps = { { x = { 1 }, shape = {} }, { x = { 1 }, shape = {} }, { x = { 500 }, shape = {} } }, expect = "hit" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
  },
}

return { explosion, flat, frozen_inputs, jump }
