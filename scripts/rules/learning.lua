--- A training that has no NaN and still does not learn: reasons that its graph and its outputs show.
local rule = require "msdbg.rule"

local abs, exp, floor, format, log, max = math.abs, math.exp, math.floor, string.format, math.log, math.max
local nan = 0 / 0

-- Operators that pass their input on: they neither add a layer nor replace one.
local PASSES = {
  Cast = true, Reshape = true, BiasAdd = true, Dropout = true, Identity = true, Flatten = true, ExpandDims = true, Squeeze = true,
}
local LOSSES = "op:*CrossEntropy* and not @gradient"

--- The operator that computes input `i` of a node, in front of those that pass it on. nil: no operator does.
local function source_of(node, i)
  local input = node.inputs[i + 1]
  local from, steps = input and input.node, 0
  while from and PASSES[from.op] and steps < 8 do
    input, steps = from.inputs[1], steps + 1
    from = input and input.node
  end
  return from and from.kind == "operator" and from or nil
end

--- The sums of the rows of a matrix of probabilities, and of its columns. `value` makes the probability from the element.
local function sums(t, value)
  local n, c, v = t.shape[1], t.shape[2], t:view():doubles()
  local rows, columns = {}, {}
  for i = 0, n - 1 do
    local sum = 0
    for k = 0, c - 1 do
      local x = value(v[i * c + k])
      sum, columns[k + 1] = sum + x, (columns[k + 1] or 0) + x
    end
    rows[i + 1] = sum
  end
  return rows, columns
end

local function farthest(list, from)
  local far = 0
  for _, x in ipairs(list) do far = max(far, abs(x - from)) end
  return far
end

-- Larger matrices would take too long in Lua.
local MOST = 4e6

local function once(ctx, t)
  local key = format("%d %d %s", t.rank, t.node.graph_id, t.node.name)
  ctx.state.told = ctx.state.told or {}
  if ctx.state.told[key] then return false end
  ctx.state.told[key] = true
  return true
end

local function chain(name, expect, ops, x)
  local tensors, before = {}, nil
  for i, op in ipairs(ops) do
    local node = format("Default/net/%s-op%d", op, i)
    tensors[i] = { node = node, op = op, inputs = before and { before } or nil, x = x or { { 0.5, 0.5 }, { 0.5, 0.5 } } }
    before = node
  end
  return { name = name, select = true, expect = expect, tensors = tensors }
end

local double_softmax = rule {
  name     = "softmax-before-loss",
  summary  = "a softmax feeds a loss that applies one itself",
  tags     = { "loss", "learning", "default" },
  severity = "warning",
  select   = LOSSES,
  needs    = { "count" },
  check    = function(t, _, ctx)
    if not t.node.op:find "SoftmaxCrossEntropy" or t.slot ~= "output:0" then return nil end
    local from = source_of(t.node, 0)
    if from and from.op == "Softmax" and once(ctx, t) then
      return { message = format("%s applies a softmax to the output of %s", t.node.op, from.name) }
    end
  end,
  cause    = "The loss expects logits and gets probabilities. The second softmax makes them nearly equal, so little gradient is left.",
  next     = "Give the logits to the loss, and use the softmax for predictions only.",
  cases    = {
    chain("twice", "hit", { "MatMul", "Softmax", "SparseSoftmaxCrossEntropyWithLogits" }),
    chain("twice, in float32", "hit", { "MatMul", "Softmax", "Cast", "SoftmaxCrossEntropyWithLogits" }),
    chain("logits", "clean", { "MatMul", "BiasAdd", "SparseSoftmaxCrossEntropyWithLogits" }),
    chain("a loss of probabilities", "clean", { "MatMul", "Softmax", "BinaryCrossEntropy" }),
  },
}

-- Operators that take the probability of one class out of a row.
local PICKS = { GatherD = true, GatherNd = true }
local MIXES = { MatMul = true, BatchMatMul = true, BatchMatMulV2 = true, Conv2D = true, Dense = true }

--- A contrastive loss compares rows and columns of one matrix: it has a softmax over each of them on purpose.
local function has_sibling(node)
  local input, count = node.inputs[1], 0
  for _, user in ipairs(input and input.node and input.node.users or {}) do
    if user.node.op:find "Softmax$" then count = count + 1 end
  end
  return count > 1
end

--- True if a loss is computed from a softmax by hand: one class of a row is picked, and no layer comes after it.
local function ends_in_loss(node, backward)
  if has_sibling(node) then return false end
  local open, seen, picked = { node }, { [node.key] = true }, false
  while #open > 0 do
    for _, user in ipairs(table.remove(open).users) do
      local by = user.node
      if by.kind == "operator" and not seen[by.key] and not backward[by.key] then
        if MIXES[by.op] then return false end
        picked = picked or PICKS[by.op] or false
        seen[by.key], open[#open + 1] = true, by
      end
    end
  end
  return picked
end

--- Softmax operators that feed a loss, directly or through a logarithm.
local function softmax_of_losses(s)
  local list, seen, backward = {}, {}, {}
  local function add(node)
    if not seen[node.key] then seen[node.key], list[#list + 1] = true, node end
  end
  for loss in s:nodes("(" .. LOSSES .. ") or (op:NLLLoss* and not @gradient)", { optional = true }):each() do
    local from = source_of(loss, 0)
    if from and from.op == "Log" then from = source_of(from, 0) end
    if from and from.op:find "Softmax$" then add(from) end
  end
  local by_hand = s:nodes("(op:Softmax or op:LogSoftmax) and not @gradient", { optional = true })
  if #by_hand > 0 then
    for node in s:nodes("@gradient or @optimizer", { optional = true }):each() do backward[node.key] = true end
  end
  for node in by_hand:each() do
    if ends_in_loss(node, backward) then add(node) end
  end
  return #list > 0 and s:nodes(list) or nil
end

local axis = rule {
  name     = "softmax-axis",
  summary  = "a softmax runs over the batch, not over the classes",
  tags     = { "loss", "learning", "default" },
  severity = "warning",
  select   = softmax_of_losses,
  needs    = { "elements" },
  params   = {
    -- Half precision sums a thousand probabilities to within a percent.
    tolerance = { type = "number", default = 0.02, min = 0, help = "largest distance of a sum from 1" },
  },
  check    = function(t, p, ctx)
    if #t.shape ~= 2 or t.shape[1] < 2 or t.shape[2] < 2 or t.size > MOST then return nil end
    local rows, columns = sums(t, t.node.op:find "^Log" and exp or function(x) return x end)
    local off = farthest(rows, 1)
    if off > p.tolerance and farthest(columns, 1) <= p.tolerance and once(ctx, t) then
      return { actual = off, message = format("its %d rows do not sum to 1 (off by %.2g), its %d columns do: it runs over the batch",
        #rows, off, #columns) }
    end
  end,
  cause    = "The axis of the softmax is 0: the samples of a batch compete with each other instead of the classes of a sample.",
  next     = "Set the axis to -1, and check what else reduces over the batch.",
  cases    = {
    chain("over the batch", "hit", { "MatMul", "Softmax", "BinaryCrossEntropy" }, { { 0.9, 0.2 }, { 0.1, 0.8 } }),
    chain("over the classes", "clean", { "MatMul", "Softmax", "BinaryCrossEntropy" }, { { 0.9, 0.1 }, { 0.2, 0.8 } }),
    chain("over the batch, before a logarithm", "hit", { "MatMul", "Softmax", "Log", "NLLLoss" }, { { 0.9, 0.2 }, { 0.1, 0.8 } }),
    chain("over the batch, as logarithms", "hit", { "MatMul", "LogSoftmax", "NLLLoss" }, { { -0.105, -1.609 }, { -2.303, -0.223 } }),
    chain("over the classes, as logarithms", "clean", { "MatMul", "LogSoftmax", "NLLLoss" }, { { -0.105, -2.303 }, { -1.609, -0.223 } }),
    chain("over the batch, one class picked by hand", "hit", { "MatMul", "Softmax", "GatherD", "Log", "ReduceMean" },
      { { 0.9, 0.2 }, { 0.1, 0.8 } }),
    chain("weights of a gate", "clean", { "MatMul", "Softmax", "GatherD", "MatMul", "ReduceMean" }, { { 0.9, 0.2 }, { 0.1, 0.8 } }),
    chain("not before a loss", "clean", { "MatMul", "Softmax", "MatMul" }, { { 0.9, 0.2 }, { 0.1, 0.8 } }),
    chain("NaN", "clean", { "MatMul", "Softmax", "BinaryCrossEntropy" }, { { nan, nan }, { nan, nan } }),
  },
}

local LINEAR = { MatMul = true, MatMulBiasAddFusion = true, Conv2D = true }

local function has_weight(node)
  local input = node.inputs[2]
  return input and input.node and input.node.trainable or false
end

local function layers_in_a_row(name, expect, between)
  local tensors = {
    { node = "fc1.weight", op = "Parameter", trainable = true, x = { { 1, 2 } } },
    { node = "fc2.weight", op = "Parameter", trainable = true, x = { { 1, 2 } } },
    { node = "x", op = "Parameter", x = { { 1, 2 } } },
    { node = "Default/fc1-Dense/MatMul-op0", op = "MatMul", inputs = { "x", "fc1.weight" }, x = { { 1, 2 } } },
  }
  local before = "Default/fc1-Dense/MatMul-op0"
  for i, op in ipairs(between) do
    local node = format("Default/net/%s-op%d", op, i)
    tensors[#tensors + 1] = { node = node, op = op, inputs = { before }, x = { { 1, 2 } } }
    before = node
  end
  tensors[#tensors + 1] = { node = "Default/fc2-Dense/MatMul-op9", op = "MatMul", inputs = { before, "fc2.weight" }, x = { { 1, 2 } } }
  return { name = name, select = true, expect = expect, tensors = tensors }
end

local linear = rule {
  name     = "linear-layers-in-a-row",
  summary  = "two linear layers with no activation between them",
  tags     = { "activation", "learning" },
  -- Low-rank adapters and bottlenecks are built like this on purpose.
  severity = "info",
  select   = "(op:MatMul or op:MatMulBiasAddFusion or op:Conv2D) and not @gradient",
  needs    = { "count" },
  check    = function(t, _, ctx)
    if not has_weight(t.node) then return nil end
    local from = source_of(t.node, 0)
    if from and LINEAR[from.op] and has_weight(from) and once(ctx, t) then
      return { message = format("%s follows %s with nothing but a bias between them", t.node.inputs[2].node.name,
        from.inputs[2].node.name) }
    end
  end,
  cause    = "An activation or a normalisation is missing: together the two layers can learn no more than one.",
  next     = "Compare construct() with the reference. In low-rank adapters it is intended.",
  cases    = {
    layers_in_a_row("nothing between", "hit", {}),
    layers_in_a_row("a bias and a reshape between", "hit", { "BiasAdd", "Reshape" }),
    layers_in_a_row("an activation between", "clean", { "BiasAdd", "ReLU" }),
    layers_in_a_row("a normalisation between", "clean", { "BatchNorm" }),
  },
}

--- The number of classes: the last axis of the loss's input.
local function classes_of(loss)
  local input = loss.inputs[1]
  local from = input and input.node
  local output = from and from.kind == "operator" and from.outputs[1]
  local shape = output and output.shape
  return shape and #shape == 2 and shape[2] > 1 and shape[2] or nil
end

local chance = rule {
  name     = "loss-at-chance",
  summary  = "the loss stays at the logarithm of the number of classes",
  tags     = { "loss", "learning" },
  -- In a warm-up it is normal.
  severity = "info",
  select   = "op:*SoftmaxCrossEntropyWithLogits and not @gradient",
  needs    = { "mean" },
  params   = {
    least = { type = "integer", default = 20, min = 2, help = "fewest dumped steps that are judged" },
    -- With a batch of 32 and ten classes the loss varies by about 2 %.
    tolerance = { type = "number", default = 3, min = 0, unit = "%", help = "largest distance of the mean loss of the later half" },
    classes = { type = "integer", default = 0, min = 0, help = "number of classes; 0: from the graph" },
  },
  check    = function(t, p, ctx)
    local classes = p.classes > 0 and p.classes or classes_of(t.node)
    if t.size ~= 1 or not classes or not t.stats.mean then return nil end
    ctx.state.losses = ctx.state.losses or {}
    local key = format("%d %d %s", t.rank, t.node.graph_id, t.node.name)
    local list = ctx.state.losses[key] or {}
    ctx.state.losses[key] = list
    list[#list + 1], list.node, list.rank, list.step, list.classes = t.stats.mean, t.node.name, t.rank, t.step, classes
  end,
  finish   = function(_, p, ctx)
    local found, keys = {}, {}
    for key in pairs(ctx.state.losses or {}) do keys[#keys + 1] = key end
    table.sort(keys)
    for _, key in ipairs(keys) do
      local list = ctx.state.losses[key]
      local half, sum = floor(#list / 2), 0
      for i = #list - half + 1, #list do sum = sum + list[i] / half end
      local at = log(list.classes)
      if #list >= p.least and abs(sum - at) <= p.tolerance / 100 * at then
        found[#found + 1] = { node = list.node, rank = list.rank, step = list.step, actual = sum,
          message = format("mean loss %.4g in the later half of %d steps; ln(%d classes) is %.4g", sum, #list, list.classes, at) }
      end
    end
    return found
  end,
  cause    = "The output says nothing about the label: the labels do not belong to the inputs (shuffled separately), a branch is cut off, "
           .. "or the learning rate is far too low.",
  next     = "Look at a few samples with their labels at the end of the pipeline, and test whether the network can memorise one batch.",
  cases    = {
    { name = "ln 4", params = { classes = 4, least = 4 }, expect = "hit", hits = 1, steps = {
      { x = { 1.5 }, shape = {} }, { x = { 1.39 }, shape = {} }, { x = { 1.38 }, shape = {} }, { x = { 1.39 }, shape = {} } } },
    { name = "falling", params = { classes = 4, least = 4 }, expect = "clean", steps = {
      { x = { 1.5 }, shape = {} }, { x = { 1.39 }, shape = {} }, { x = { 1.2 }, shape = {} }, { x = { 1.0 }, shape = {} } } },
    { name = "too few steps", params = { classes = 4 }, expect = "clean", steps = {
      { x = { 1.39 }, shape = {} }, { x = { 1.38 }, shape = {} } } },
    { name = "the number of classes is not known", x = { 1.39 }, shape = {}, params = { least = 2 }, expect = "clean" },
  },
}

return { double_softmax, axis, linear, chance }
