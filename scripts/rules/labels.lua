--- Labels and the samples that they belong to.
local rule = require "msdbg.rule"
local training = require "msdbg.training"

local floor, format, max, min, sqrt = math.floor, string.format, math.max, math.min, math.sqrt

local function group_of(t) return format("%d %d", t.rank, t.node.graph_id) end

--- The elements of sample `i` of a batch that are compared: at most `most`, spread over the sample.
local function features(values, size, i, most)
  local row, step = {}, max(1, floor(size / most))
  for k = 0, min(size, most) - 1 do row[k + 1] = values[i * size + k * step] end
  return row
end

--- The labels of a batch: integers, one for each sample. nil: something else.
local function labels_of(t)
  if not t.dtype:find "int" or #t.shape == 0 or #t.shape > 2 or t.shape[1] < 2 or t.size ~= t.shape[1] then return nil end
  return t:view():doubles()
end

--- The label of the sample that is most similar to sample `i`; nil if none differs from it in more than nothing.
local function nearest(samples, i)
  local best, label = math.huge, nil
  local own = samples[i].x
  for k, other in ipairs(samples) do
    if k ~= i then
      local x, sum = other.x, 0
      for j = 1, #own do
        local d = own[j] - x[j]
        sum = sum + d * d
        if sum >= best then break end
      end
      if sum < best then best, label = sum, other.y end
    end
  end
  return label
end

--- How often the most similar sample has the same label, and how often any other one would have it.
local function agreement(samples)
  local n, share, count = #samples, {}, 0
  for _, sample in ipairs(samples) do share[sample.y] = (share[sample.y] or 0) + 1 end
  local chance = 0
  for _, m in pairs(share) do chance = chance + (m / n) * ((m - 1) / (n - 1)) end
  for i, sample in ipairs(samples) do
    if nearest(samples, i) == sample.y then count = count + 1 end
  end
  return count, chance
end

--- Steps of 16 samples near their class's place; `label` says which label sample i of class c gets.
local function batches(name, expect, label)
  local case = { name = name, select = true, expect = expect, params = { least = 48 }, steps = {} }
  for step = 1, 4 do
    local x, y = {}, {}
    for i = 1, 16 do
      local class, noise = i % 2, ((i * 7 + step * 3) % 11) / 100
      x[i], y[i] = { class + noise, 1 - class - noise, noise }, label(class, i, step)
    end
    case.steps[step] = { tensors = {
      { node = "x", op = "Parameter", x = x }, { node = "y", op = "Parameter", dtype = "int32", x = y } } }
  end
  return case
end

local independent = rule {
  name     = "labels-independent",
  summary  = "similar samples share a label no more often than any two",
  tags     = { "data", "learning" },
  -- Generated data look like this, and so do tasks in which similarity of the raw values means nothing.
  severity = "info",
  select   = training.fed,
  needs    = { "elements" },
  params   = {
    -- With 64 samples of ten classes chance is 6 agreements, give or take 2.4; 1-nearest neighbour reaches twice that even on CIFAR-10.
    least = { type = "integer", default = 64, min = 8, help = "fewest samples that are judged" },
    most = { type = "integer", default = 256, min = 8, help = "samples that are compared" },
    deviations = { type = "number", default = 2, min = 0, help = "above chance by this many standard deviations is a dependence" },
    elements = { type = "integer", default = 256, min = 1, help = "elements of a sample that are compared" },
  },
  check    = function(t, _, ctx)
    local state = ctx.state
    state.now = state.now or {}
    local now = state.now[group_of(t)] or {}
    state.now[group_of(t)] = now
    local labels = labels_of(t)
    if labels then
      now.labels, now.several = labels, now.labels ~= nil or now.several
      now.tensor = t
    elseif t.dtype:find "float" and #t.shape >= 2 and (not now.samples or t.size > now.samples.size) then
      now.samples = t
    end
  end,
  step_end = function(_, p, ctx)
    local all = ctx.state.all or {}
    ctx.state.all = all
    for group, now in pairs(ctx.state.now or {}) do
      local t = now.samples
      -- Of two lists of integers nobody can tell which one holds the labels.
      if t and now.labels and not now.several and t.shape[1] == now.tensor.size then
        local list = all[group] or { rank = t.rank }
        all[group], list.node, list.step = list, now.tensor.node.name, t.step
        local values, size = t:view():doubles(), t.size / t.shape[1]
        for i = 0, min(t.shape[1], p.most - #list) - 1 do
          list[#list + 1] = { x = features(values, size, i, p.elements), y = now.labels[i] }
        end
      end
    end
    ctx.state.now = nil
  end,
  finish   = function(_, p, ctx)
    local found, groups = {}, {}
    for group in pairs(ctx.state.all or {}) do groups[#groups + 1] = group end
    table.sort(groups)
    for _, group in ipairs(groups) do
      local samples = ctx.state.all[group]
      local count, chance = 0, 1
      if #samples >= p.least then count, chance = agreement(samples) end
      local expected = chance * #samples
      -- Where nearly all labels are the same, nothing can be told.
      if chance < 0.9 and count <= expected + p.deviations * sqrt(expected * (1 - chance)) then
        found[#found + 1] = { node = samples.node, rank = samples.rank, step = samples.step, actual = count / #samples,
          message = format("the most similar of %d samples has the same label in %d cases; by chance in %.0f", #samples, count, expected) }
      end
    end
    return found
  end,
  cause    = "The labels do not belong to the samples: they were shuffled separately, read in another order, or shifted by one.",
  next     = "Look at a few samples with their labels at the end of the pipeline. With generated data or inputs whose raw values say "
           .. "nothing about the class, ignore this.",
  cases    = {
    batches("labels by class", "clean", function(class) return class end),
    batches("labels by place in the batch", "hit", function(_, i, step) return floor((i * i + 3 * i + step) / 4) % 2 end),
    batches("one label only", "clean", function() return 1 end),
    { name = "few samples", select = true, expect = "clean", tensors = {
      { node = "x", op = "Parameter", x = { { 1, 2 }, { 2, 1 } } }, { node = "y", op = "Parameter", dtype = "int32", x = { 0, 1 } } } },
    { name = "no labels", select = true, expect = "clean", x = { { 1, 2 }, { 2, 1 } }, node = "x", op = "Parameter" },
  },
}

local function feeds_loss(node)
  for _, user in ipairs(node.users) do
    if user.node.op == "SoftmaxCrossEntropyWithLogits" then return true end
  end
  return false
end

--- Losses that take the number of a class for each sample, as their second input, and what spreads such numbers out for a loss.
local function losses(s)
  local list = s:nodes("(op:SparseSoftmaxCrossEntropyWithLogits or op:NLLLoss or op:nll_loss_forward or op:nll_loss2d_forward or op:OneHot) "
                       .. "and not @gradient", { optional = true })
    :filter(function(node) return #node.inputs >= 2 and (node.op ~= "OneHot" or feeds_loss(node)) end)
  return #list > 0 and list or nil
end

--- What a node put out, if it has run and was recorded.
local function recorded(node, step)
  if node.kind == "operator" then return node:output(0, { step = step }) end
  return node:value { step = step }
end

--- nil when neither the graph nor a recorded value says how many.
local function classes_of(t)
  local one_hot = t.node.op == "OneHot"
  local node = one_hot and t.node or t.node.inputs[1].node
  if not node then return nil end
  local shape = node.outputs[1] and node.outputs[1].shape
  if not shape then
    local value = recorded(node, t.step)
    shape = value and value.shape
  end
  if not shape or #shape == 0 then return nil end
  -- Images have the classes in front of rows and columns.
  local last = #shape == 1 or one_hot or t.node.op == "SparseSoftmaxCrossEntropyWithLogits"
  return last and shape[#shape] or shape[2]
end

--- The label that the loss leaves out; "unknown" where the graph does not say.
local function ignored_by(node)
  if node.op == "SparseSoftmaxCrossEntropyWithLogits" or node.op == "OneHot" then return nil end
  return tonumber(node.attrs.ignore_index) or "unknown"
end

local function loss_of(name, expect, labels, op, out)
  local case = { name = name, select = true, expect = expect, tensors = {
    { node = "logits", op = "MatMul", x = { { 1, 2, 3 }, { 4, 5, 6 } } },
    { node = "Default/Loss-op0", op = op, inputs = { "logits", "labels" }, slot = "input:1", x = labels, dtype = "int32" } } }
  if out then case.tensors[3] = { node = "Default/Loss-op0", op = op, inputs = { "logits", "labels" }, x = { out } } end
  return case
end

local function spread(name, expect, labels, user)
  local inputs = { "labels", "depth" }
  return { name = name, select = true, expect = expect, tensors = {
    { node = "Default/OneHot-op0", op = "OneHot", inputs = inputs, slot = "input:0", x = labels, dtype = "int32" },
    { node = "Default/OneHot-op0", op = "OneHot", inputs = inputs, x = { { 1, 0, 0 }, { 0, 0, 0 } } },
    { node = "Default/Loss-op0", op = user, inputs = { "logits", "Default/OneHot-op0" }, x = { 1, 2 } } } }
end

local out_of_range = rule {
  name     = "label-out-of-range",
  summary  = "a label is no class of the loss",
  tags     = { "data", "default" },
  severity = "error",
  select   = losses,
  slots    = "input",
  needs    = { "min", "max" },
  check    = function(t)
    local one_hot = t.node.op == "OneHot"
    if t.slot ~= (one_hot and "input:0" or "input:1") then return nil end
    local classes, low, high = classes_of(t), t.stats.min, t.stats.max
    if not classes or not low or not t.dtype:find "int" then return nil end
    local ignored = ignored_by(t.node)
    -- It raises an error for a label that it does not know.
    if ignored == "unknown" and recorded(t.node, t.step) then return nil end
    -- A row of zeros, which leaves a sample out, is asked for with a negative number.
    local bad = (high >= classes and high ~= ignored and high) or (low < 0 and low ~= ignored and not one_hot and low) or nil
    local name = one_hot and t.node.name or t.node.inputs[1].node.name
    if bad then return { actual = bad, message = format("label %d, but %s has %d classes", bad, name, classes) } end
  end,
  cause    = "The data have more classes than the network, begin to count at 1, or mark samples to leave out with a number that the loss "
           .. "does not know. Some back ends return garbage and raise no error.",
  next     = "Count the classes of the data; look at the labels of this step (t:where \"x >= CLASSES\").",
  cases    = {
    loss_of("one too many", "hit", { 0, 3 }, "SparseSoftmaxCrossEntropyWithLogits", 1.5),
    loss_of("the last class", "clean", { 0, 2 }, "SparseSoftmaxCrossEntropyWithLogits"),
    loss_of("below 0", "hit", { -1, 2 }, "SparseSoftmaxCrossEntropyWithLogits"),
    loss_of("an unknown label that the loss accepted", "clean", { 0, 255 }, "nll_loss_forward", 1.5),
    loss_of("an unknown label that ended the training", "hit", { 0, 255 }, "nll_loss_forward"),
    spread("one too many for a row of zeros", "hit", { 0, 3 }, "SoftmaxCrossEntropyWithLogits"),
    spread("a row of zeros that is asked for", "clean", { 0, -1 }, "SoftmaxCrossEntropyWithLogits"),
    spread("no label", "clean", { 0, 3 }, "Mul"),
    { name = "no classes known", slot = "input:1", op = "NLLLoss", x = { 9 }, dtype = "int32", expect = "clean" },
  },
}

return { independent, out_of_range }
