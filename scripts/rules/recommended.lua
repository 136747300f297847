--- What MindInsight proposes when a debugging session begins, with its thresholds. They look for trouble, not for errors:
-- a healthy run may hit some of them, so none is tagged default.
local rule = require "msdbg.rule"

local nan = 0 / 0

-- Each is offered where its condition can be judged, as MindInsight does it.

--- Initial weights are seen in a training only.
local function initial_weights(s)
  -- Biases start at zero on purpose.
  return s.can.step and "@weight and not /bias$/" or nil
end

--- Momentum and biases begin with zeros: a training would be held in its first step.
local function computed(s) return s.can.step and "not @parameter and not @constant" or "@all" end

--- Only Ascend has a flag for overflow inside of an operator.
local function flagged(s) return s.info.device_target:lower() == "ascend" and computed(s) or nil end

local function values(n, value)
  local list = {}
  for i = 1, n do list[i] = value end
  return list
end

local weight_initialization = rule {
  name     = "recommended-weight-initialization",
  summary  = "initial weight is all zero",
  tags     = { "recommended", "weight", "live" },
  select   = initial_weights,
  params   = { limit = { type = "number", default = 100, min = 0, max = 100, unit = "%", help = "zeros from here on are a hit" } },
  when     = "WI zero_percentage_ge=$limit",
  cause    = "A zero initialiser, or a checkpoint that was not loaded.",
  next     = "Look at the initialiser of the layer and at the checkpoint; units that start out equal stay equal.",
  cases    = {
    { name = "all zero", x = { 0, 0, 0 }, live = true, expect = "hit" },
    { name = "one drawn value", x = { 0, 0, 1 }, live = true, expect = "clean" },
    { name = "a dump has no initial values", x = { 0, 0 }, expect = "not checked" },
    { name = "NaN", x = { 0, nan }, live = true, expect = "not checked" },
    { name = "not offered on a dump", x = { 0, 0 }, node = "fc1.weight", op = "Parameter", select = true, expect = "clean" },
  },
}

local weight_change_too_large = rule {
  name     = "recommended-weight-change-too-large",
  summary  = "weight changed by more than its own size",
  tags     = { "recommended", "weight", "update" },
  select   = "@weight",
  params   = { limit = { type = "number", default = 1, min = 0, help = "mean change / mean magnitude before" } },
  when     = "WCL abs_mean_update_ratio_gt=$limit",
  cause    = "A learning rate that is too high, an exploding gradient, no warm-up; or a bias that started near zero.",
  next     = "Compare with the gradient of the step; lower the learning rate. For matrices see update-too-large.",
  cases    = {
    { name = "sign turned", x = { -1, 1 }, prev = { 1, -1 }, expect = "hit" },
    { name = "a tenth", x = { 1.1, -1.1 }, prev = { 1, -1 }, expect = "clean" },
    { name = "first step", x = { 1, 2 }, expect = "not checked" },
    { name = "NaN", x = { nan, 2 }, prev = { 1, 2 }, expect = "not checked" },
  },
}

local weight_not_changed = rule {
  name     = "recommended-weight-not-changed",
  summary  = "weight of the optimizer did not change",
  tags     = { "recommended", "weight", "update" },
  select   = "@weight",
  params   = { rtol = { type = "number", default = 1e-5, min = 0, help = "relative tolerance of each element" } },
  when     = "WNC rtol=$rtol",
  cause    = "The parameter is not in the optimizer's list, its gradient is zero or blocked, or the learning rate is zero.",
  next     = "Look at the gradient of this weight with zero-gradient; check the parameter groups of the optimizer.",
  cases    = {
    { name = "equal", x = { 1, 2 }, prev = { 1, 2 }, expect = "hit" },
    { name = "one element moved", x = { 1, 2.1 }, prev = { 1, 2 }, expect = "clean" },
    { name = "first step", x = { 1, 2 }, expect = "not checked" },
  },
}

local weight_change_too_small = rule {
  name     = "recommended-weight-change-too-small",
  summary  = "weight changed by less than a ten-thousandth",
  tags     = { "recommended", "weight", "update" },
  select   = "@weight",
  params   = { limit = { type = "number", default = 1e-4, min = 0, help = "mean change / mean magnitude before" } },
  when     = "WCS abs_mean_update_ratio_lt=$limit",
  cause    = "A learning rate that is too low or at the end of its schedule, or a gradient that vanishes.",
  next     = "Look at the schedule and at vanishing-gradient. Near convergence small updates are expected.",
  cases    = {
    { name = "a millionth", x = { 1.000001, 2 }, prev = { 1, 2 }, dtype = "float64", expect = "hit" },
    { name = "a hundredth", x = { 1.01, 2 }, prev = { 1, 2 }, expect = "clean" },
    { name = "first step", x = { 1, 2 }, expect = "not checked" },
  },
}

local gradient_vanishing = rule {
  name     = "recommended-gradient-vanishing",
  summary  = "mean gradient below a billionth",
  tags     = { "recommended", "gradient" },
  select   = "@gradient",
  params   = { limit = { type = "number", default = 1e-9, min = 0, help = "mean magnitude" } },
  when     = "GV abs_mean_lt=$limit",
  cause    = "Saturated or dead activations, a deep network without shortcuts or normalisation, or a loss scale that is too small.",
  next     = "Look at the activations that feed this gradient; raise the loss scale in half precision.",
  cases    = {
    { name = "tiny", x = { 1e-10, -1e-10 }, expect = "hit" },
    { name = "ordinary", x = { 1e-4, -1e-4 }, expect = "clean" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
    { name = "NaN", x = { nan, 1 }, expect = "not checked" },
  },
}

local operator_overflow = rule {
  name     = "recommended-operator-overflow",
  summary  = "the hardware flagged an overflow",
  tags     = { "recommended", "overflow", "live" },
  severity = "error",
  select   = flagged,
  when     = "OO",
  cause    = "A result inside the operator left the range of its type, although the output may look finite.",
  next     = "Take the earliest flagged operator, compute it in float32 or lower the loss scale.",
  cases    = {
    { name = "flagged", x = { 1, 2 }, overflow = true, expect = "hit" },
    { name = "not flagged", x = { 1, 2 }, overflow = false, expect = "clean" },
    { name = "no flags recorded", x = { 1, 2 }, expect = "not checked" },
  },
}

local tensor_overflow = rule {
  name     = "recommended-tensor-overflow",
  summary  = "NaN or Inf in a tensor",
  tags     = { "recommended", "overflow" },
  severity = "error",
  select   = computed,
  when     = "TO",
  cause    = "Division by zero, log or root of a value that is not positive, exp of a large value, or a value beyond the range of "
           .. "half precision.",
  next     = "msdbg origin names the first operator that broke; look at its inputs.",
  cases    = {
    { name = "NaN", x = { 1, nan }, expect = "hit" },
    { name = "Inf", x = { 1, math.huge }, expect = "hit" },
    { name = "finite", x = { 1, 2 }, expect = "clean" },
    { name = "0-d", x = { -math.huge }, shape = {}, expect = "hit" },
  },
}

local tensor_all_zero = rule {
  name     = "recommended-tensor-all-zero",
  summary  = "every element is zero",
  tags     = { "recommended", "zero" },
  select   = computed,
  params   = { limit = { type = "number", default = 100, min = 0, max = 100, unit = "%", help = "zeros from here on are a hit" } },
  when     = "TZ zero_percentage_ge=$limit",
  cause    = "A dead layer, an unused branch, a mask, or dropout with keep and drop swapped.",
  next     = "Find the first all-zero output in execution order and decide whether zeros are valid there.",
  cases    = {
    { name = "zeros of both signs", x = { 0, -0.0, 0 }, expect = "hit" },
    { name = "one value", x = { 0, 0, 1e-30 }, expect = "clean" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
    { name = "NaN", x = { 0, nan }, expect = "not checked" },
  },
}

--- Fewer than 0.1 % of the outputs inside of the range in which a float32 derivative is not zero.
local function saturation(name, op, low, high)
  return rule {
    name     = "recommended-" .. name .. "-range",
    summary  = ("%s output is saturated almost everywhere"):format(name),
    tags     = { "recommended", "activation" },
    select   = "op:" .. op,
    params   = { limit = { type = "number", default = 0.1, min = 0, max = 100, unit = "%", help = "fewer unsaturated outputs are a hit" } },
    when     = ("AR range_start_inclusive=%.17g range_end_inclusive=%.17g range_percentage_lt=$limit"):format(low, high),
    cause    = "The inputs of the activation are far too large: weights, learning rate, or missing normalisation.",
    next     = "Look at the values before the activation; normalise them or lower the initial weights.",
    cases    = {
      { name = "all at the end", x = values(8, 1), expect = "hit" },
      { name = "middle", x = { 0.25, 0.5, 0.75 }, expect = "clean" },
      { name = "NaN", x = { nan, 0.5 }, expect = "not checked" },
    },
  }
end

local relu = rule {
  name     = "recommended-relu-range",
  summary  = "ReLU output is zero almost everywhere",
  tags     = { "recommended", "activation" },
  select   = "op:ReLU or op:ReLUV2",
  params   = { limit = { type = "number", default = 99.9, min = 0, max = 100, unit = "%", help = "more zeros are a hit" } },
  when     = "AR range_start_inclusive=-1 range_end_inclusive=0 range_percentage_gt=$limit",
  cause    = "The inputs of the ReLU are all negative: a large negative bias, or a step with too high a learning rate.",
  next     = "Look at the values before the ReLU and at the bias; see dead-relu.",
  cases    = {
    { name = "dead", x = { 0, 0, 0 }, expect = "hit" },
    { name = "half", x = { 0, 1 }, expect = "clean" },
    { name = "NaN", x = { nan, 0 }, expect = "not checked" },
  },
}

return {
  weight_initialization, weight_change_too_large, weight_not_changed, weight_change_too_small, gradient_vanishing, operator_overflow,
  tensor_overflow, tensor_all_zero, saturation("tanh", "Tanh", -0.9999999545590812, 0.9999999545590812),
  saturation("sigmoid", "Sigmoid", 9.21359998566181e-08, 0.9999999078640001), relu,
}
