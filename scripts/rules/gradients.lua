--- Gradients of the weights, layer by layer: compared with the other layers of the step and with the steps before.
local rule = require "msdbg.rule"
local training = require "msdbg.training"

local format, max, sqrt = string.format, math.max, math.sqrt
local nan = 0 / 0

local weight_gradients = training.once(function(s)
  local list = training.gradients(s)
  return #list > 0 and s:nodes(list) or nil
end)

--- The weights of the gradients that a node has, by slot; nil if the node was selected by name.
local function weights_of(node, ctx)
  if not ctx.state.weights_of then
    local _, found = training.gradients(ctx.session)
    ctx.state.weights_of = found
  end
  return ctx.state.weights_of(node)
end

--- The gradient that was selected: an output, or what an optimizer inside a condition was given. nil: not dumped, or another value.
local function given_gradient(t, ctx)
  local weights = weights_of(t.node, ctx)
  if not weights or weights[t.slot] then return t end
  for slot in pairs(weights) do
    local input = tonumber(slot:match "^input:(%d+)$")
    if input and t.slot == "output:0" then return t.node:input(input, { step = t.step, execution = t.execution }) end
  end
end

--- The weight that an optimizer updates with this gradient.
local function weight_of(t, ctx)
  local weights = weights_of(t.node, ctx)
  return weights and weights[t.slot]
end

local function weight_name(t, ctx)
  local weight = weight_of(t, ctx)
  return weight and weight.name or t.node.name
end

--- Root of the mean square of the elements that are not zero: embedding tables and ReLU leave most of a gradient at zero, which
-- would make an average small without anything being wrong. nil: not to be judged, or an earlier value whose statistics do not tell.
local function magnitude(t)
  local stats = t.stats
  -- Biases are left out: their gradients are sums over the batch and are orders above those of the matrices.
  if #t.shape < 2 or t.size < 2 or not t.dtype:find "float" then return nil end
  if not (stats.zero_count and stats.nan_count and stats.l2_norm) then return nil end
  if stats.nan_count > 0 or stats.pos_inf_count > 0 or stats.neg_inf_count > 0 then return nil end
  local n = stats.count - stats.zero_count
  return n > 0 and stats.l2_norm / sqrt(n) or 0
end

--- What the rules here ask of the tensor that they judge: the gradient it stands for, its magnitude, its layer, its rank and graph.
local function judged(t, ctx)
  local facts = training.facts_of(ctx)
  if not facts.gradient then
    local given = given_gradient(t, ctx)
    facts.gradient = { given = given, value = given and magnitude(given),
      layer = given and format("%d %s %d", given.rank, given.name, given.execution),
      group = given and format("%d %d", given.rank, given.node.graph_id) }
  end
  return facts.gradient
end

--- At most `most` earlier values.
local function earlier(gradient, most)
  if gradient.is_first == nil then gradient.is_first = not gradient.given:previous() end
  return gradient.is_first and {} or training.earlier(gradient.given, most)
end

--- Gradients of one step, by rank and graph.
local function collect(ctx, gradient)
  local now = ctx.state.now or {}
  ctx.state.now = now
  local members = now[gradient.group] or {}
  now[gradient.group] = members
  members[#members + 1] = { tensor = gradient.given, value = gradient.value }
end

local function collect_gradient(t, _, ctx)
  local gradient = judged(t, ctx)
  if gradient.value and gradient.value > 0 then collect(ctx, gradient) end
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
    -- Layers of a healthy net differ by two or three orders of magnitude (50 in a LeNet; queries and keys of a transformer that begins
    -- to learn are a thousandth below the usual layer and a millionth below the embedding). A float32 has seven digits: of an update a
    -- million times smaller than the others, most is rounded away.
    ratio = { type = "number", default = 1e6, min = 1, help = "median of the layers of the step / this one; of two, the larger one" },
  },
  check    = collect_gradient,
  step_end = function(_, p, ctx)
    local found = {}
    for _, members in ipairs(groups(ctx)) do
      local values = {}
      for i, member in ipairs(members) do values[i] = member.value end
      table.sort(values)
      local median = values[math.floor(#values / 2) + 1]
      for _, member in ipairs(members) do
        local ratio = median / member.value
        if ratio > p.ratio then
          found[#found + 1] = {
            tensor = member.tensor, actual = ratio,
            message = format("gradient of %s is %.3g times smaller than that of the usual layer", weight_name(member.tensor, ctx), ratio),
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

--- A step of a network of layers in a row, from the input to the loss, with the gradient of each weight.
local function in_a_row(name, expect, gradients)
  local tensors, flow, count = {}, nil, #gradients
  for i = 1, count do
    tensors[#tensors + 1] = { node = format("fc%d.weight", i), op = "Parameter", trainable = true, x = { { 1, 2 } } }
  end
  for i = 1, count do
    local node = format("Default/fc%d-Dense/MatMul-op%d", i, i)
    tensors[#tensors + 1] = { node = node, op = "MatMul", inputs = { flow, format("fc%d.weight", i) }, x = { { 0, 0 } } }
    if not flow then tensors[#tensors].inputs = { "fc1.weight" } end
    flow = node
  end
  for i = count, 1, -1 do
    local back, value = format("Gradients/Default/fc%d-Dense/gradMatMul/MatMul-op%d", i, count + i), gradients[i]
    tensors[#tensors + 1] = { node = back, op = "MatMul", x = { { value, -value } } }
    tensors[#tensors + 1] = { node = format("Default/optimizer-SGD/SGD-op%d", 2 * count + i), op = "SGD",
      inputs = { format("fc%d.weight", i), back }, x = { { 1, 2 } } }
  end
  return { name = name, select = true, expect = expect, tensors = tensors, hits = expect == "hit" and 1 or nil }
end

local by_depth = rule {
  name     = "vanishing-by-depth",
  summary  = "gradients fall layer by layer towards the input",
  tags     = { "gradient", "default" },
  severity = "warning",
  select   = weight_gradients,
  needs    = { "count", "zero_count", "l2_norm", "nan_count", "pos_inf_count", "neg_inf_count" },
  params   = {
    -- A sigmoid passes a quarter at most: five such layers make a factor of 200 with careful initial weights and 1e4 without. In a LeNet
    -- it is 50.
    ratio = { type = "number", default = 1000, min = 1, help = "largest gradient of the layers in a row / that of the first one" },
    -- Two or three layers of different shapes are in this order by chance.
    layers = { type = "integer", default = 4, min = 2, help = "layers in a row, beginning at the input, without a rise towards it" },
    fall = { type = "number", default = 1.5, min = 1, help = "fall per layer in the mean" },
  },
  check    = collect_gradient,
  step_end = function(_, p, ctx)
    ctx.state.depth_of = ctx.state.depth_of or training.depths(ctx.session)
    ctx.state.told = ctx.state.told or {}
    local found = {}
    for _, members in ipairs(groups(ctx)) do
      local list = {}
      for _, member in ipairs(members) do
        local weight = weight_of(member.tensor, ctx)
        local depth = weight and ctx.state.depth_of(weight)
        if depth then list[#list + 1] = { depth = depth, value = member.value, tensor = member.tensor, name = weight.name } end
      end
      table.sort(list, function(a, b) return a.depth < b.depth end)
      local n = math.min(1, #list)
      while list[n + 1] and list[n + 1].value >= list[n].value do n = n + 1 end
      local ratio = n > 0 and list[n].value / list[1].value or 0
      local group = n > 0 and format("%d %d", list[1].tensor.rank, list[1].tensor.node.graph_id)
      if n >= p.layers and ratio >= p.ratio and ratio >= p.fall ^ (n - 1) and not ctx.state.told[group] then
        ctx.state.told[group] = true  -- it is the network: later steps say the same
        found[#found + 1] = {
          tensor = list[1].tensor, actual = ratio,
          message = format("gradient of %s is %.3g times smaller than that of %s, falling in each of %d layers", list[1].name, ratio,
            list[n].name, n),
        }
      end
    end
    return found
  end,
  cause    = "Each layer passes on a fraction of the gradient: sigmoid or tanh in a row, weights that are too small, no normalisation and "
           .. "no shortcuts. The layers at the input hardly learn, whatever the learning rate is.",
  next     = "Use ReLU or GELU with initial weights scaled by the width of the layer, add normalisation or residual connections. Changing "
           .. "the learning rate does not help: it moves all layers equally.",
  cases    = {
    in_a_row("five sigmoid layers", "hit", { 1e-6, 1e-5, 1e-4, 1e-3, 1e-2 }),
    in_a_row("equal layers", "clean", { 3e-3, 1e-3, 2e-3, 5e-3, 1e-2 }),
    in_a_row("one small layer in the middle", "clean", { 1e-2, 1e-2, 1e-7, 1e-2, 1e-2 }),
    in_a_row("three layers", "clean", { 1e-6, 1e-4, 1e-2 }),
    in_a_row("growing towards the input", "clean", { 1e-2, 1e-3, 1e-4, 1e-5, 1e-6 }),
    in_a_row("a factor of 3 in all", "clean", { 1e-2, 1.2e-2, 1.5e-2, 2e-2, 3e-2 }),
  },
}

--- What earlier steps had, where the check did not begin with the first one.
local function history_of(gradient)
  local n, largest = 0, 0
  for _, before in ipairs(earlier(gradient, 8)) do
    local value = magnitude(before)
    if value and value > 0 then n, largest = n + 1, max(largest, value) end
  end
  return { n = n, largest = largest }
end

local exploding = rule {
  name     = "exploding-gradient",
  summary  = "gradient far above earlier steps or other layers",
  tags     = { "gradient", "default" },
  severity = "error",
  select   = weight_gradients,
  needs    = { "count", "zero_count", "l2_norm", "nan_count", "pos_inf_count", "neg_inf_count" },
  params   = {
    -- Batches differ by a factor of ten or so, a loss scale doubles; one misjudged sample in a batch that is learned otherwise makes
    -- a few hundred. The reference is the largest of all earlier steps, so one batch without errors does not become the norm.
    growth = { type = "number", default = 1000, min = 1, help = "this gradient / largest of the steps before" },
    history = { type = "integer", default = 2, min = 1, help = "steps before that are needed for it" },
    -- See vanishing-gradient; the median is the usual layer, also when several explode.
    ratio = { type = "number", default = 1e5, min = 1, help = "this gradient / median of the layers of the step" },
  },
  check    = function(selected, p, ctx)
    local gradient = judged(selected, ctx)
    local t, value = gradient.given, gradient.value
    if not value or value == 0 then return nil end
    collect(ctx, gradient)
    local before = ctx.state[gradient.layer] or history_of(gradient)
    local growth = before.n >= p.history and value / before.largest or 0
    ctx.state[gradient.layer] = { n = before.n + 1, largest = max(before.largest, value) }
    if growth > p.growth then
      return {
        actual = growth,
        message = format("gradient of %s is %.3g times the largest of %d earlier steps", weight_name(t, ctx), growth, before.n),
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
            message = format("gradient of %s is %.3g times that of the usual layer", weight_name(member.tensor, ctx), ratio),
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
    layers("equal layers", "clean", { { 1, -1 } }, { { 10, 1 } }, { { 100, -2 } }),
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
    -- In the first step a gradient may be zero by construction, after weights that start at zero; in the next one it is not.
    steps = { type = "integer", default = 2, min = 1, help = "steps in a row from which on it is a hit" },
  },
  check    = function(selected, p, ctx)
    local gradient = judged(selected, ctx)
    local t = gradient.given
    if not t then return nil end
    local before = ctx.state[gradient.layer]
    if not before then
      before = { count = 0 }
      -- Where the check did not begin with the first step.
      for _, other in ipairs(p.steps > 1 and earlier(gradient, p.steps - 1) or {}) do
        if magnitude(other) ~= 0 then break end
        before = { count = before.count + 1, first = other.step }
      end
    end
    local now = gradient.value == 0 and { count = before.count + 1, first = before.first or t.step } or { count = 0 }
    ctx.state[gradient.layer] = now
    if now.count >= p.steps then
      local text = now.count == 1 and format("step %d", t.step) or format("all %d dumped steps from %d to %d", now.count, now.first, t.step)
      return { actual = now.count, message = format("gradient of %s is zero in %s", weight_name(t, ctx), text) }
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

return { vanishing, by_depth, exploding, zero }
