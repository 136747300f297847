--- Gradients of the weights, layer by layer: compared with the other layers of the step and with the steps before.
local rule = require "msdbg.rule"

local format, max, sqrt = string.format, math.max, math.sqrt
local nan = 0 / 0

--- What the optimizer is given: the operators that feed it from outside, whatever stands between them and the backward pass
-- (undoing the loss scale, clipping, summing over devices).
local function weight_gradients(s)
  local own, list, seen = {}, {}, {}
  local function key(node) return format("%d:%d:%s", node.rank, node.graph_id, node.name) end
  local optimizer = s:nodes("@optimizer and not @parameter and not @constant", { optional = true })
  for node in optimizer:each() do own[key(node)] = true end
  for node in optimizer:each() do
    for _, input in ipairs(node.inputs) do
      local from = input.node
      if from and from.kind == "operator" and not own[key(from)] and not seen[key(from)] then
        seen[key(from)] = true
        list[#list + 1] = from
      end
    end
  end
  return #list > 0 and s:nodes(list) or nil
end

--- The weight that an optimizer updates with this gradient.
local function weight_of(node)
  for _, user in ipairs(node.users) do
    for _, input in ipairs(user.node.inputs) do
      if input.node and input.node.trainable then return input.node.name end
    end
  end
  return node.name
end

--- Root of the mean square of the elements that are not zero: embedding tables and ReLU leave most of a gradient at zero, which
-- would make an average small without anything being wrong. nil: not to be judged.
local function magnitude(t)
  local stats = t.stats
  -- Biases are left out: their gradients are sums over the batch and lie orders above those of the matrices.
  if #t.shape < 2 or t.size < 2 or not t.dtype:find "float" then return nil end
  if stats.nan_count > 0 or stats.pos_inf_count > 0 or stats.neg_inf_count > 0 then return nil end
  local n = stats.count - stats.zero_count
  return n > 0 and stats.l2_norm / sqrt(n) or 0
end

local function layer(t) return format("%d %s %d", t.rank, t.name, t.execution) end

--- Gradients of one step, by rank and graph.
local function collect(ctx, t, value)
  local group = format("%d %d", t.rank, t.node.graph_id)
  local now = ctx.state.now or {}
  ctx.state.now = now
  now[group] = now[group] or {}
  table.insert(now[group], { tensor = t, value = value })
end

--- The groups of the step that ends, in a fixed order.
local function groups(ctx)
  local names, list = {}, {}
  for name in pairs(ctx.state.now or {}) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = ctx.state.now[name] end
  ctx.state.now = nil
  return list
end

--- A step with one gradient for each layer.
local function layers(name, expect, ...)
  local case = { name = name, expect = expect, tensors = {} }
  for i, gradient in ipairs { ... } do
    case.tensors[i] = { node = format("Gradients/Default/fc%d-Dense/gradMatMul/MatMul-op%d", i, i), op = "MatMul", x = gradient }
  end
  return case
end

--- Two steps of a training with one weight; its optimizer is found in the graph.
local function trained(name, gradient, expect)
  local step = { tensors = {
    { node = "fc1.weight", op = "Parameter", trainable = true, x = { { 1, 2 } } },
    { node = "Default/fc1-Dense/MatMul-op0", op = "MatMul", inputs = { "fc1.weight" }, x = { { 0, 0 } } },
    { node = "Gradients/Default/fc1-Dense/gradMatMul/MatMul-op1", op = "MatMul", x = gradient },
    { node = "Default/optimizer-SGD/SGD-op2", op = "SGD", inputs = { "fc1.weight", "Gradients/Default/fc1-Dense/gradMatMul/MatMul-op1" },
      x = { { 1, 2 } } } } }
  return { name = name, select = true, expect = expect, steps = { step, step }, hits = expect == "hit" and 1 or nil }
end

local vanishing = rule {
  name     = "vanishing-gradient",
  summary  = "gradient tiny compared with other layers",
  tags     = { "gradient", "default" },
  severity = "warning",
  select   = weight_gradients,
  needs    = { "count", "zero_count", "l2_norm", "nan_count", "pos_inf_count", "neg_inf_count" },
  params   = {
    -- Layers of a healthy net differ by two or three orders of magnitude (50 in a LeNet). A float32 has seven digits: of an update
    -- a million times smaller than the others, most is rounded away.
    ratio = { type = "number", default = 1e6, min = 1, help = "largest gradient of the step / this one" },
  },
  check    = function(t, _, ctx)
    local value = magnitude(t)
    if value and value > 0 then collect(ctx, t, value) end
  end,
  step_end = function(_, p, ctx)
    local found = {}
    for _, members in ipairs(groups(ctx)) do
      local largest = 0
      for _, member in ipairs(members) do largest = max(largest, member.value) end
      for _, member in ipairs(members) do
        local ratio = largest / member.value
        if ratio > p.ratio then
          found[#found + 1] = {
            tensor = member.tensor, actual = ratio,
            message = format("gradient of %s is %.3g times smaller than the largest of the step", weight_of(member.tensor.node), ratio),
          }
        end
      end
    end
    return found
  end,
  cause    = "Each layer of the backward pass multiplied the gradient by a factor below one: saturated sigmoid or tanh, weights that "
           .. "are too small, or a deep network without shortcuts or normalisation.",
  next     = "Follow the gradient from the loss to this layer (msdbg stats DUMP @gradient) and find where it shrinks; look there "
           .. "with saturated-sigmoid and saturated-tanh; add normalisation or shortcuts.",
  cases    = {
    layers("eight orders below", "hit", { { 1, -1 } }, { { 1e-8, -1e-8 } }),
    layers("three orders below", "clean", { { 1, -1 } }, { { 1e-3, -1e-3 } }),
    layers("a bias", "clean", { { 1, -1 } }, { 1e-8, -1e-8 }),
    layers("a sparse gradient", "clean", { { 1, -1 } }, { { 1, 0, 0, 0, 0, 0, 0, 0 } }),
    layers("zero is another fault", "clean", { { 1, -1 } }, { { 0, 0 } }),
    layers("NaN", "clean", { { 1, -1 } }, { { nan, 1e-8 } }),
    layers("empty", "clean", { { 1, -1 } }, { {} }),
    { name = "alone", x = { { 1e-8, -1e-8 } }, expect = "clean" },
  },
}

local exploding = rule {
  name     = "exploding-gradient",
  summary  = "gradient far above earlier steps or other layers",
  tags     = { "gradient", "default" },
  severity = "error",
  select   = weight_gradients,
  needs    = { "count", "zero_count", "l2_norm", "nan_count", "pos_inf_count", "neg_inf_count" },
  params   = {
    -- Batches differ by a factor of ten or so, a loss scale doubles; one misjudged sample in a batch that is learned otherwise makes
    -- a few hundred. Compared is with the largest of all earlier steps, so that a batch without any error is not the usual.
    growth = { type = "number", default = 1000, min = 1, help = "this gradient / largest of the steps before" },
    history = { type = "integer", default = 2, min = 1, help = "steps before that are needed for it" },
    -- See vanishing-gradient; the median is the usual layer, also when several explode.
    ratio = { type = "number", default = 1e5, min = 1, help = "this gradient / median of the layers of the step" },
  },
  check    = function(t, p, ctx)
    local value = magnitude(t)
    if not value or value == 0 then return nil end
    collect(ctx, t, value)
    local before = ctx.state[layer(t)] or { n = 0, largest = 0 }
    local growth = before.n >= p.history and value / before.largest or 0
    ctx.state[layer(t)] = { n = before.n + 1, largest = max(before.largest, value) }
    if growth > p.growth then
      return {
        actual = growth,
        message = format("gradient of %s is %.3g times the largest of the steps before", weight_of(t.node), growth),
      }
    end
  end,
  step_end = function(_, p, ctx)
    local found = {}
    for _, members in ipairs(groups(ctx)) do
      local values = {}
      for i, member in ipairs(members) do values[i] = member.value end
      table.sort(values)
      local median = values[math.floor((#values + 1) / 2)]
      for _, member in ipairs(#values >= 3 and members or {}) do
        local ratio = member.value / median
        if ratio > p.ratio then
          found[#found + 1] = {
            tensor = member.tensor, actual = ratio,
            message = format("gradient of %s is %.3g times that of the usual layer", weight_of(member.tensor.node), ratio),
          }
        end
      end
    end
    return found
  end,
  cause    = "The learning rate moved the weights so far that the backward pass amplifies instead of damping; long recurrent chains; "
           .. "inputs that are not normalised.",
  next     = "Look at the update before the first such step with update-too-large: it is usually the cause. Lower the learning rate "
           .. "or warm it up; clip gradients after unscaling them.",
  cases    = {
    { name = "two thousandfold", steps = { { x = { { 1, -1 } } }, { x = { { 2, -2 } } }, { x = { { 4e3, -4e3 } } } }, expect = "hit",
      hit_steps = { 2 }, actual = 2000 },
    { name = "noise", steps = { { x = { { 1, -1 } } }, { x = { { 9, -9 } } }, { x = { { 30, 1 } } } }, expect = "clean" },
    { name = "back from almost nothing", steps = { { x = { { 1, -1 } } }, { x = { { 1e-6, 0 } } }, { x = { { 1, 1 } } } },
      expect = "clean" },
    { name = "one step only", x = { { 1e30, 1e30 } }, expect = "clean" },
    { name = "second step", steps = { { x = { { 1, 1 } } }, { x = { { 1e9, 1 } } } }, expect = "clean" },
    { name = "second step, wanted", steps = { { x = { { 1, 1 } } }, { x = { { 1e9, 1 } } } }, params = { history = 1 }, expect = "hit" },
    layers("one layer of three", "hit", { { 1, -1 } }, { { 1e6, 1 } }, { { 2, -2 } }),
    layers("one layer of two", "clean", { { 1, -1 } }, { { 1e6, 1 } }),
    layers("layers alike", "clean", { { 1, -1 } }, { { 10, 1 } }, { { 100, -2 } }),
    { name = "empty", x = { {} }, expect = "clean" },
  },
}

local zero = rule {
  name     = "zero-gradient",
  summary  = "no gradient reaches a weight, step after step",
  tags     = { "gradient", "default" },
  severity = "warning",
  select   = weight_gradients,
  needs    = { "count", "zero_count", "l2_norm", "nan_count", "pos_inf_count", "neg_inf_count" },
  params   = {
    -- In the first step a gradient may be zero by construction, behind weights that start at zero; in the next one it is not.
    steps = { type = "integer", default = 2, min = 1, help = "steps in a row from which on it is a hit" },
  },
  check    = function(t, p, ctx)
    local value = magnitude(t)
    local count = value == 0 and (ctx.state[layer(t)] or 0) + 1 or 0
    ctx.state[layer(t)] = count
    if count >= p.steps then
      return { actual = count, message = format("gradient of %s is zero in %d steps in a row", weight_of(t.node), count) }
    end
  end,
  cause    = "The backward path is cut: a dead ReLU after this layer, an operator without a derivative, stop_gradient, a branch whose "
           .. "result is not used, or a loss that does not depend on it.",
  next     = "Go from the loss towards this layer and find the first gradient that is all zero; look at the activation there with "
           .. "dead-relu and nan-swallowed.",
  cases    = {
    { name = "zero twice", steps = { { x = { { 0, 0 } } }, { x = { { 0, 0 } } } }, expect = "hit", hit_steps = { 1 } },
    { name = "zero once", steps = { { x = { { 0, 0 } } }, { x = { { 0, 1 } } } }, expect = "clean" },
    { name = "one step only", x = { { 0, 0 } }, expect = "clean" },
    { name = "one step only, wanted", x = { { 0, 0 } }, params = { steps = 1 }, expect = "hit" },
    { name = "a bias", steps = { { x = { 0, 0 } }, { x = { 0, 0 } } }, expect = "clean" },
    { name = "NaN", steps = { { x = { { nan, 0 } } }, { x = { { nan, 0 } } } }, expect = "clean" },
    { name = "empty", steps = { { x = { {} } }, { x = { {} } } }, expect = "clean" },
    trained("what feeds the optimizer", { { 0, 0 } }, "hit"),
    trained("what feeds it and is not zero", { { 0, 1 } }, "clean"),
  },
}

return { vanishing, exploding, zero }
