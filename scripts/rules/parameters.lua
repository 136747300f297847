--- Which parameters the optimizer was given, and weights that are far too large.
local rule = require "msdbg.rule"
local training = require "msdbg.training"

local concat, format, max, min = table.concat, string.format, math.max, math.min

local function weights(s)
  local trained, frozen = training.weights(s)
  local list = {}
  for _, nodes in ipairs { trained, frozen } do
    for _, node in ipairs(nodes) do list[#list + 1] = node end
  end
  return #trained > 0 and s:nodes(list) or nil
end

--- "a, b, c and 3 more".
local function some(nodes)
  local words = {}
  for i = 1, min(#nodes, 4) do words[i] = nodes[i].name end
  return concat(words, ", ") .. (#nodes > 4 and format(" and %d more", #nodes - 4) or "")
end

--- Where a part of a network runs in a graph of its own, weights reach it as unnamed parameters: nobody can tell who uses them.
local function hides_uses(s)
  local ranks = {}
  for node in s:nodes("@parameter and Parameter_*", { optional = true }):each() do
    if node.name:match "^Parameter_%d+$" then ranks[node.rank] = true end
  end
  return ranks
end

--- Lists of weights, by rank.
local function by_rank(nodes, wanted)
  local ranks, order = {}, {}
  for _, node in ipairs(nodes) do
    if wanted(node) then
      if not ranks[node.rank] then
        ranks[node.rank] = {}
        order[#order + 1] = node.rank
      end
      table.insert(ranks[node.rank], node)
    end
  end
  table.sort(order)
  return ranks, order
end

--- One finding for each rank, in the first step with data.
local function findings(s, nodes, wanted, words)
  local found, ranks, order = {}, by_rank(nodes, wanted)
  for _, rank in ipairs(order) do
    local list = ranks[rank]
    found[#found + 1] = { node = list[1].name, rank = rank, step = s.steps[1], actual = #list, message = words(list, rank) }
  end
  return found
end

--- Ranks that each update a part of the weights collect what the others made of theirs: the network takes that.
local function is_gathered(update)
  for _, user in ipairs(update.users) do
    if user.node.op:lower():gsub("_", ""):find("allgather", 1, true) or user.node.op == "Broadcast" then return true end
  end
  return false
end

--- Weights fc1.weight and fc2.weight; those in `used` feed an operator, those in `updated` an optimizer.
local function network(name, expect, used, updated)
  local tensors = {}
  for i = 1, 2 do
    local weight = format("fc%d.weight", i)
    tensors[i] = { node = weight, op = "Parameter", trainable = updated[i] or false, x = { { 1, 2 } } }
  end
  local before = "x"
  tensors[3] = { node = "x", op = "Parameter", x = { { 1, 2 } } }
  for i = 1, 2 do
    local node = format("Default/fc%d-Dense/MatMul-op%d", i, i)
    if used[i] then
      tensors[#tensors + 1] = { node = node, op = "MatMul", inputs = { before, format("fc%d.weight", i) }, x = { { 1, 2 } } }
      before = node
    end
  end
  for i = 1, 2 do
    if updated[i] then
      tensors[#tensors + 1] = { node = format("Default/optimizer-SGD/SGD-op%d", i), op = "SGD", inputs = { format("fc%d.weight", i) },
        x = { { 1, 2 } } }
    end
  end
  return { name = name, select = true, expect = expect, tensors = tensors, hits = expect == "hit" and 1 or nil }
end

--- A part of the weights as a parameter of its own, which the optimizer has instead of the weight.
local function part(name, collective, expect)
  local tensors = {
    { node = "own", op = "Parameter", trainable = true, x = { 1, 2 } },
    { node = "fc.weight", op = "Parameter", trainable = false, x = { { 1, 2 } } },
    { node = "x", op = "Parameter", x = { { 1, 2 } } },
    { node = "Default/fc-Dense/MatMul-op0", op = "MatMul", inputs = { "x", "fc.weight" }, x = { { 1, 2 } } },
    { node = "Default/optimizer-SGD/SGD-op0", op = "SGD", inputs = { "own" }, x = { 1, 2 } },
  }
  if collective then
    tensors[#tensors + 1] = { node = "Default/Gather-op0", op = collective, inputs = { "Default/optimizer-SGD/SGD-op0" }, x = { 1, 2 } }
  end
  return { name = name, select = true, expect = expect, tensors = tensors, hits = expect == "hit" and 1 or nil }
end

local both = { true, true }

local unused = rule {
  name     = "optimizer-without-use",
  summary  = "the optimizer has a weight that the network does not use",
  tags     = { "weight", "update", "learning", "default" },
  severity = "warning",
  select   = weights,
  needs    = { "count" },
  finish   = function(s)
    local trained, frozen = training.weights(s)
    if #trained == 0 then return {} end
    local updates, used, hidden = {}, {}, hides_uses(s)
    for node in s:nodes("@optimizer and not @parameter", { optional = true }):each() do updates[node.key] = true end
    -- Several graphs may use a weight.
    for node in s:nodes("@weight", { optional = true }):each() do
      if node:first_use() then
        used[node.rank .. " " .. node.name] = true
      else
        for _, user in ipairs(node.users) do
          if not updates[user.node.key] or is_gathered(user.node) then used[node.rank .. " " .. node.name] = true end
        end
      end
    end
    return findings(s, trained, function(node) return not hidden[node.rank] and not used[node.rank .. " " .. node.name] end,
      function(list, rank)
        local _, others = by_rank(frozen, function(node) return node.rank == rank and used[rank .. " " .. node.name] end)
        return format("%s: no operator takes %s%s", some(list), #list == 1 and "it" or "them",
          #others > 0 and "; other weights are used and not updated" or "")
      end)
  end,
  cause    = "The optimizer has the parameters of another network or of a layer that construct() does not call, or the result of the "
           .. "layer is not used.",
  next     = "Pass trainable_params() of the network that is trained to the optimizer, and compare construct() with __init__().",
  cases    = {
    network("a layer that is not called", "hit", { true, false }, both),
    network("the weights of another network", "hit", { true, false }, { false, true }),
    network("all used and updated", "clean", both, both),
    network("one that is frozen", "clean", both, { false, true }),
    part("a part of the weights, which AllGather collects", "AllGather", "clean"),
    part("one whose update nobody takes", nil, "hit"),
  },
}

local untrained = rule {
  name     = "untrained-weight",
  summary  = "no optimizer updates a weight behind trained ones",
  tags     = { "weight", "update", "learning" },
  -- Pretrained layers are frozen on purpose, and the data do not show which ones are.
  severity = "info",
  select   = weights,
  needs    = { "count" },
  finish   = function(s)
    local trained, frozen = training.weights(s)
    local depth_of = training.depths(s)
    local first = {}
    for _, node in ipairs(trained) do
      local depth = depth_of(node)
      local now = first[node.rank]
      if depth and (not now or depth < now.depth) then first[node.rank] = { depth = depth, name = node.name } end
    end
    -- Fine-tuning freezes the layers at the input.
    local function behind(node)
      local from, depth = first[node.rank], depth_of(node)
      return from ~= nil and depth ~= nil and depth > from.depth
    end
    return findings(s, frozen, behind, function(list, rank)
      return format("%s: behind %s, which is trained; fine if frozen on purpose", some(list), first[rank].name)
    end)
  end,
  cause    = "The layers are frozen on purpose, or the optimizer was given only a part of the parameters.",
  next     = "Compare the list with what should be frozen; pass trainable_params() of the whole network to the optimizer.",
  cases    = {
    network("the last layer", "hit", both, { true, false }),
    network("the first layer", "clean", both, { false, true }),
    { name = "a moving average of a trained one", select = true, expect = "clean", tensors = {
      { node = "fc1.weight", op = "Parameter", trainable = true, x = { { 1, 2 } } },
      { node = "ema.fc1.weight", op = "Parameter", x = { { 1, 2 } } },
      { node = "Default/fc1-Dense/MatMul-op0", op = "MatMul", inputs = { "fc1.weight" }, x = { { 1, 2 } } },
      { node = "Default/Mul-op1", op = "Mul", inputs = { "ema.fc1.weight" }, x = { { 1, 2 } } },
      { node = "Default/optimizer-SGD/SGD-op2", op = "SGD", inputs = { "fc1.weight" }, x = { { 1, 2 } } } } },
    network("all are trained", "clean", both, both),
    network("nothing is trained", "clean", both, { false, false }),
  },
}

local huge = rule {
  name     = "huge-weight",
  summary  = "a weight is larger than any training makes it",
  tags     = { "weight", "overflow", "default" },
  severity = "error",
  select   = "@weight",
  params   = {
    -- Trained weights stay below a million. A flipped exponent multiplies by 2^128, and a tanh or a normalization may hide that.
    limit = { type = "number", default = 1e10, min = 0, help = "largest magnitude" },
  },
  needs    = { "min", "max" },
  check    = function(t, p)
    -- Both are nil if no value is finite.
    local largest = max(t.stats.max or 0, -(t.stats.min or 0))
    return largest > p.limit and { actual = largest, message = format("magnitude %.4g", largest) }
  end,
  cause    = "A bit of the exponent was flipped, as faulty memory does, the weight was overwritten or loaded wrongly, or the training "
           .. "diverges.",
  next     = "Look at the weight in the step before (msdbg trend). If it was fine there, and the update was small, something else wrote "
           .. "it: compare the ranks (msdbg replicas), and test the memory of the device.",
  cases    = {
    { name = "a flipped exponent", x = { 0.1, 2.6e37 }, expect = "hit" },
    { name = "below zero", x = { 0.1, -2.6e37 }, expect = "hit" },
    { name = "beside NaN", x = { 0 / 0, 2.6e37 }, expect = "hit" },
    { name = "large", x = { 0.1, 1e6 }, expect = "clean" },
    { name = "an Inf is another fault", x = { 0.1, 1 / 0 }, expect = "clean" },
    { name = "only NaN", x = { 0 / 0 }, expect = "clean" },
    { name = "0-d", x = { 1e11 }, shape = {}, expect = "hit" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
  },
}

return { unused, untrained, huge }
