--- Activations that no longer pass a gradient.
local rule = require "msdbg.rule"
local training = require "msdbg.training"

local nan = 0 / 0

local function mixed(zeros, rest, value)
  local list = {}
  for i = 1, zeros do list[i] = 0 end
  for i = zeros + 1, zeros + rest do list[i] = value end
  return list
end

local function repeated(n, value)
  local list = {}
  for i = 1, n do list[i] = value end
  return list
end

local dead_relu = rule {
  name     = "dead-relu",
  summary  = "a ReLU lets nothing through",
  tags     = { "activation", "default" },
  severity = "warning",
  select   = training.relu,
  params   = {
    -- A trained ReLU layer is often 80 to 95 % zero and works; at 99.9 % (MindInsight's figure) less than one element in a
    -- thousand still passes a gradient.
    limit = { type = "number", default = 99.9, min = 0, max = 100, unit = "%", help = "more zeros than this are a hit" },
    -- The chance that 32 healthy units, half of them off, are all off is 2^-32.
    least = { type = "integer", default = 32, min = 1, help = "smaller tensors are left alone: a few units may all be off" },
  },
  when     = "size >= $least and percent(x == 0) > $limit",
  cause    = "Every input of the ReLU is negative or NaN: a bias far below zero, weights after one step that was too large, or NaN "
           .. "that ReLU turned into zero (see nan-swallowed).",
  next     = "Look at the input of the ReLU (negative or NaN?), at the bias and at the last update of the layer; lower the learning "
           .. "rate, use a leaky variant, or reinitialise the layer.",
  cases    = {
    { name = "all zero", x = repeated(64, 0), expect = "hit" },
    { name = "sparse but alive", x = mixed(60, 4, 0.5), expect = "clean" },
    { name = "fused with the layer before it", x = repeated(64, 0), op = "MatMulBiasAddReluFusion", select = true, expect = "hit" },
    { name = "a layer without it", x = repeated(64, 0), op = "MatMulBiasAddFusion", select = true, expect = "clean" },
    { name = "few elements", x = { 0, 0, 0, 0 }, expect = "clean" },
    { name = "few elements, wanted", x = { 0, 0, 0, 0 }, params = { least = 1 }, expect = "hit" },
    { name = "0-d", x = { 0 }, shape = {}, expect = "clean" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
  },
}

local sparse_relu = rule {
  name     = "mostly-dead-relu",
  summary  = "nearly all outputs of a ReLU are zero",
  tags     = { "activation" },
  severity = "info",
  select   = training.relu,
  params   = {
    -- Of a random layer half of the outputs are zero, of the trained networks in use 50 to 90 %. Worth a look, no fault.
    limit = { type = "number", default = 95, min = 0, max = 100, unit = "%", help = "more zeros than this are a hit" },
    least = { type = "integer", default = 32, min = 1, help = "smaller tensors are left alone" },
  },
  when     = "size >= $least and percent(x == 0) > $limit",
  cause    = "Most units are inactive for this batch: the layer is wider than needed, or it is dying.",
  next     = "Watch the share over the steps: msdbg.trend or display; if it rises towards 100 %, the layer is dying.",
  cases    = {
    { name = "62 of 64", x = mixed(62, 2, 1), expect = "hit" },
    { name = "half", x = mixed(32, 32, 1), expect = "clean" },
    { name = "NaN alone", x = repeated(64, nan), expect = "not checked" },
  },
}

--- `slope` is the derivative written in terms of the output.
local function saturated(name, op, slope, live, edge)
  return rule {
    name     = "saturated-" .. name,
    summary  = ("a %s is saturated nearly everywhere"):format(name),
    tags     = { "activation", "default" },
    severity = "warning",
    select   = ("op:%s and not @gradient"):format(op),
    params   = {
      -- A gate or a confident output may be saturated for half of its elements and more. Where nine of ten are, the layer below
      -- learns from a tenth of its outputs.
      limit = { type = "number", default = 90, min = 0, max = 100, unit = "%", help = "more saturated outputs than this are a hit" },
      -- A gradient that is multiplied by this loses six orders of magnitude, more than the normal range of float16 has below 1.
      slope = { type = "number", default = 1e-6, min = 0, max = 1, help = "derivatives below this count as saturated" },
      least = { type = "integer", default = 16, min = 1, help = "smaller tensors are left alone" },
    },
    when     = ("size >= $least and percent(%s < $slope) > $limit"):format(slope),
    cause    = "The inputs of the activation are far from zero: large weights, inputs that are not normalised, or a learning rate "
             .. "that is too high.",
    next     = "Look at the values before the activation (msdbg stats DUMP SEL --slots input); normalise the inputs, scale the "
             .. "initial weights by the width of the layer, or use an activation that does not saturate.",
    cases    = {
      { name = "all at the end", x = repeated(32, 1), expect = "hit" },
      { name = "all at the other end", x = repeated(32, edge), expect = "hit" },
      { name = "middle", x = repeated(32, live), expect = "clean" },
      { name = "float16, exactly 1", x = repeated(32, 1), dtype = "float16", expect = "hit" },
      { name = "half and half", x = mixed(16, 16, live), expect = "clean" },
      { name = "NaN alone", x = repeated(32, nan), expect = "not checked" },
      { name = "few elements", x = { 1, 1 }, expect = "clean" },
      { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
    },
  }
end

local softmax = rule {
  name     = "saturated-softmax",
  summary  = "nearly every row of a softmax is one-hot",
  tags     = { "activation", "attention" },
  severity = "info",
  select   = "op:Softmax and not @gradient",
  params   = {
    -- The row of a classifier that knows its training set is one-hot, so this is not a fault by itself; in attention it
    -- means that each position looks at one other only.
    limit = { type = "number", default = 99, min = 0, max = 100, unit = "%", help = "more one-hot rows than this are a hit" },
    least = { type = "integer", default = 16, min = 1, help = "smaller tensors are left alone" },
  },
  -- Each row sums to 1, so the sum is the number of rows. Rows of one element are always 1: there the smallest is 1 too.
  when     = "size >= $least and min(x) < 0.5 and 100 * count(x > 1 - 1e-6) > $limit * sum(x)",
  cause    = "The scores are too large: attention scores that are not divided by the square root of the width, or logits that grow "
           .. "without bound.",
  next     = "Look at the scores before the softmax and at the weights that produce them; add weight decay or label smoothing, "
           .. "normalise queries and keys.",
  cases    = {
    { name = "one-hot", x = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0 }, shape = { 4, 4 }, expect = "hit" },
    { name = "even", x = repeated(16, 0.25), shape = { 4, 4 }, expect = "clean" },
    { name = "rows of one element", x = repeated(16, 1), shape = { 16, 1 }, expect = "clean" },
    { name = "NaN", x = repeated(16, nan), shape = { 4, 4 }, expect = "not checked" },
    { name = "empty", x = {}, shape = { 0, 4 }, expect = "clean" },
  },
}

return {
  dead_relu, sparse_relu, saturated("sigmoid", "Sigmoid", "x * (1 - x)", 0.5, 0), saturated("tanh", "Tanh", "1 - x * x", 0.1, -1), softmax,
}
