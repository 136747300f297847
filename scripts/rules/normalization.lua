--- Running variances of batch normalisation: what the network divides by when it is used.
local rule = require "msdbg.rule"

local nan = 0 / 0
local variances = "@parameter and (**moving_variance or **running_var) and not @optimizer"

local negative = rule {
  name     = "batch-norm-variance-negative",
  summary  = "a moving variance is negative",
  tags     = { "batch-norm", "default" },
  severity = "error",
  select   = variances,
  -- No tolerance: a mean of squares is never below zero.
  when     = "min(x) < 0",
  cause    = "The statistics were not computed as a variance: mean(x^2) - mean(x)^2 in half precision, a momentum outside 0 to 1, an "
           .. "optimizer or weight decay that updates the parameter, or the wrong checkpoint.",
  next     = "Take moving_mean and moving_variance out of the optimizer's parameters, compute the statistics in float32, check the "
           .. "momentum.",
  cases    = {
    { name = "negative", x = { 1, -1e-7 }, expect = "hit" },
    { name = "zero and negative zero", x = { 0, -0.0 }, expect = "clean" },
    { name = "ordinary", x = { 1, 0.5 }, expect = "clean" },
    { name = "NaN", x = { nan, nan }, expect = "not checked" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
  },
}

local zero = rule {
  name     = "batch-norm-variance-zero",
  summary  = "a moving variance is zero",
  tags     = { "batch-norm", "default" },
  severity = "warning",
  select   = variances,
  params   = {
    -- A thousandth of the epsilon (1e-5) that is added before the root: what the channel says is divided by epsilon alone, and
    -- comes out thirty times too small. Ordinary channels are above 1e-4.
    limit = { type = "number", default = 1e-8, min = 0, help = "a smaller variance is a hit" },
  },
  when     = "min(x) >= 0 and min(x) < $limit",
  cause    = "A channel gives the same value for every input: dead activations before it, a filter of zeros, or constant input data.",
  next     = "Find the channel (t:where \"x < 1e-8\") and look at the output of the convolution before it with dead-relu; check the "
           .. "input.",
  cases    = {
    { name = "one dead channel", x = { 0.5, 0, 1 }, expect = "hit" },
    { name = "small but there", x = { 1e-4, 1 }, expect = "clean" },
    { name = "negative is another fault", x = { -1, 1 }, expect = "clean" },
    { name = "as it starts", x = { 1, 1 }, expect = "clean" },
    { name = "NaN", x = { nan, nan }, expect = "not checked" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
  },
}

local exploding = rule {
  name     = "batch-norm-variance-exploding",
  summary  = "a moving variance is huge",
  tags     = { "batch-norm", "default" },
  severity = "warning",
  select   = variances,
  params   = {
    -- Activations of a thousand and more before the normalisation: in float16 65 standard deviations fit, and the squares
    -- overflow at 256. Pixels from 0 to 255 that were never scaled give about 5e3 per input weight.
    limit = { type = "number", default = 1e6, min = 0, help = "a larger variance is a hit" },
  },
  when     = "max(x) > $limit",
  cause    = "Activations grow without bound before the normalisation, which hides it from the loss: a learning rate that is too "
           .. "high, weights without decay, or input data that were not scaled.",
  next     = "Compare the variances of earlier steps; look at the weights before it with update-too-large; scale the input data.",
  cases    = {
    { name = "1e8", x = { 1, 1e8 }, expect = "hit" },
    { name = "pixels", x = { 5000, 300 }, expect = "clean" },
    { name = "NaN", x = { nan, nan }, expect = "not checked" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
  },
}

return { negative, zero, exploding }
