--- The loss scale of mixed precision: overflows that it answers, and those that it cannot.
local rule = require "msdbg.rule"
local training = require "msdbg.training"

local format = string.format

local function loss_scales(s)
  local _, scales = training.loss_scale_skips(s)
  local list = {}
  for i, scale in ipairs(scales) do list[i] = scale.node end
  return #list > 0 and s:nodes(list) or nil
end

--- Steps of a training whose loss scale has these values and whose weight moves from its first value to its last.
local function scaled(name, expect, scales, first, last, from)
  local case = { name = name, select = true, expect = expect, steps = {} }
  for i, scale in ipairs(scales) do
    local weight = i == #scales and last or first
    case.steps[i] = { step = (from or 0) + i - 1, tensors = {
      { node = "scale_value", op = "Parameter", shape = {}, x = { scale } },
      { node = "fc1.weight", op = "Parameter", trainable = true, x = { { weight, 1 } } },
      { node = "Default/optimizer-SGD/SGD-op2", op = "SGD", inputs = { "fc1.weight" }, x = { { 1, 2 } } } } }
  end
  return case
end

local function halved(n)
  local list = {}
  for i = 1, n do list[i] = 2 ^ (24 - i) end
  return list
end

--- One finding for each loss scale, at the end.
local function finish_with(judge)
  return function(s, p)
    local found = {}
    local skips, scales = training.loss_scale_skips(s)
    for _, scale in ipairs(scales) do
      local steps = {}
      for _, skip in ipairs(skips) do
        if skip.rank == scale.rank then steps[#steps + 1] = skip end
      end
      if #steps > 0 then
        local text, actual = judge(scale, steps, p)
        local last = steps[#steps]
        if text then
          found[#found + 1] = { node = scale.node.name, rank = scale.rank, step = last.step, actual = actual, message = text }
        end
      end
    end
    return found
  end
end

local stuck = rule {
  name     = "loss-scale-stuck",
  summary  = "gradients overflow in every step, nothing is learnt",
  tags     = { "precision", "overflow", "default" },
  severity = "error",
  select   = loss_scales,
  needs    = { "mean" },
  params   = {
    -- A dynamic loss scale begins at 2^24 on purpose and halves until the gradients fit: 16 halvings bring it to 256, which fits where
    -- anything does.
    search = { type = "integer", default = 16, min = 1, help = "overflows in a row with which a falling loss scale may begin" },
    -- 2^24 is the highest usual start. Above 2^32 a scaled gradient fits into float16 only if it is below 1.5e-5.
    most = { type = "number", default = 2 ^ 32, min = 1, help = "above this a falling loss scale is not searching any more" },
  },
  finish   = finish_with(function(scale, skips, p)
    -- All dumped steps: whether those between them overflowed is not known.
    if #skips < scale.judged or #skips < 2 then return nil end
    local first, last = skips[1], skips[#skips]
    if first.from == last.to then
      return format("the update was left out in all %d dumped steps and the loss scale stays %.6g", #skips, last.to), last.to
    end
    -- The search is over long before so many steps.
    if last.step >= p.search or last.to <= 1 or last.to > p.most then
      return format("the update was left out in all %d dumped steps, while the loss scale fell from %.6g to %.6g", #skips, first.from,
        last.to), last.to
    end
  end),
  cause    = "The loss scale is too large and is not lowered, or the gradients overflow whatever it is: NaN or Inf in the forward pass, "
           .. "or gradients that are beyond float16 by themselves.",
  next     = "Use a dynamic loss scale (DynamicLossScaleManager, ms.amp.DynamicLossScaler), and call its adjust in each step; if it falls "
           .. "to 1, look for the operator in which the gradients grow, and compute it in float32.",
  cases    = {
    scaled("a search that has begun", "clean", halved(6), 1, 1),
    scaled("a search that finds its value", "clean", { 2 ^ 17, 2 ^ 16, 2 ^ 16 }, 1, 2),
    scaled("falling after the search", "hit", halved(6), 1, 1, 100),
    scaled("falling without end", "hit", halved(24), 1, 1),
    scaled("far too high from the start", "hit", { 2 ^ 60, 2 ^ 59, 2 ^ 58 }, 1, 1),
    scaled("a scale that is not needed", "clean", { 1024, 1024, 1024 }, 1, 1),
    scaled("a scale that grows", "clean", { 1024, 1024, 2048 }, 1, 2),
  },
}

local skipped = rule {
  name     = "loss-scale-skip",
  summary  = "gradients overflowed and the update was left out",
  tags     = { "precision", "overflow" },
  severity = "info",
  select   = loss_scales,
  needs    = { "mean" },
  finish   = finish_with(function(scale, skips)
    local last = skips[#skips]
    return format("in %d of %d dumped steps; in step %d the loss scale went from %.6g to %.6g", #skips, scale.judged, last.step, last.from,
      last.to), #skips
  end),
  cause    = "A dynamic loss scale looks for the largest value that does not overflow: it doubles after some steps without overflow and "
           .. "halves after one. Such a step changes no weight.",
  next     = "Nothing, as long as it is now and then. If it is in most steps, see loss-scale-stuck.",
  cases    = {
    scaled("once", "hit", { 2 ^ 17, 2 ^ 16, 2 ^ 16 }, 1, 2),
    scaled("never", "clean", { 1024, 1024, 2048 }, 1, 2),
    { name = "no loss scale", select = true, x = { 1 }, expect = "clean" },
  },
}

return { stuck, skipped }
