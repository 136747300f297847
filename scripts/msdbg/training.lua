-- Facts about a training from its graph and values: its data, its weights, its loss scale, the updates between two dumped steps.
local core = require "msdbg.core"

local ipairs, next, setmetatable, table, tonumber = ipairs, next, setmetatable, table, tonumber

local M = {}

--- Operators whose output is zero if the input of the activation is negative; MatMulBiasAddReluFusion contains one.
M.relu = "(op:ReLU or op:ReLUV2 or op:ReLU6 or op:*ReluFusion) and not @gradient"

local function nodes(s, selector) return s:nodes(selector, { optional = true }) end

--- Asks once per session: several rules need the same facts, and a graph may have a million nodes. Graphs of a training may still arrive.
function M.once(find)
  local known = setmetatable({}, { __mode = "k" })
  return function(s)
    if s.kind ~= "dump" then return find(s) end
    local answer = known[s]
    if not answer then
      answer = { find(s) }
      known[s] = answer
    end
    return answer[1], answer[2]
  end
end
local once = M.once

--- A dump may hold parameters alone. Then nothing tells which of them are trained.
local function has_operators(s) return s.kind ~= "dump" or #nodes(s, "not @parameter and not @constant") > 0 end

local function names(list)
  local set = {}
  for _, name in ipairs(list) do set[name] = true end
  return set
end

-- Parameter names used by cells of the framework; with a scope in front if the cell is part of another one.
local STATE = names {
  "weight", "bias", "gamma", "beta", "moving_mean", "moving_variance", "running_mean", "running_var", "embedding_table", "global_step",
  "counter", "current_iterator_step", "last_overflow_iterator_step",
}

local function last_part(name) return name:match "[^.]*$" end

--- A parameter that holds the factor for the loss: `scale_value` of ms.amp, `scale_sense` of TrainOneStepWithLossScaleCell,
--- `loss_scale` of the user's programs.
function M.is_loss_scale(node)
  local name = last_part(node.name):lower()
  if name ~= "scale_value" and name ~= "scale_sense" and not name:find "loss_?scal" then return false end
  local output = node.outputs[1]
  local dtype = output and output.dtype or "unknown"
  return (dtype == "unknown" or dtype:find "^float" ~= nil) and #(output and output.shape or {}) <= 1
end

-- Written by the network itself: counters, moving averages.
local function is_written(node)
  for _, user in ipairs(node.users) do
    if user.slot == "input:0" and (user.node.op:find "^Assign" or user.node.op:find "^Scatter") then return true end
  end
  return false
end

--- Parameters that the program passes to the network in each call. A graph does not distinguish them from the network's own: their
--- names are Python arguments, therefore without a dot, and nothing writes them.
M.inputs = once(function(s)
  -- Parameter_12 and similar names are values that one part of a graph passes to another.
  local function may_be(node)
    local name = node.name
    return name:match "^[%a_][%w_]*$" and not name:match "^Parameter_%d+$" and not STATE[name]
  end
  -- Another graph may show that the network owns it.
  local named = "@parameter and not **.**"
  local own = {}
  for node in nodes(s, named):each() do
    if node.trainable or is_written(node) or M.is_loss_scale(node) then own[node.rank .. " " .. node.name] = true end
  end
  return nodes(s, named .. " and not @weight and not @optimizer"):filter(function(node)
    if not may_be(node) or own[node.rank .. " " .. node.name] then return false end
    local output = node.outputs[1]
    return output and output.dtype and true or false
  end)
end)

--- What a network is fed: its inputs, the outputs of a queue, and data that an agent names. nil: nothing of that kind.
function M.fed(s)
  local list = M.inputs(s):union(nodes(s, "op:GetNext or op:GetNextFromQueue or (data.** and @parameter and not @weight)"))
  return #list > 0 and list or nil
end

--- Each weight once per rank, even if several graphs use it, split into trained ones and those without an optimizer. Of several
--- nodes for one weight, returns that of the graph with the most steps: an optimizer inside a condition does not run in each step.
---@return msdbg.Node[] trained
---@return msdbg.Node[] frozen  without an optimizer in any graph; empty if nothing is trained at all
M.weights = once(function(s)
  if not has_operators(s) then return {}, {} end
  local steps, of, order, any_trained = {}, {}, {}, false
  for _, graph in ipairs(s.graphs) do
    steps[graph.rank] = steps[graph.rank] or {}
    steps[graph.rank][graph.id] = #graph.steps
  end
  for node in nodes(s, "@weight"):each() do
    local rank, name, trains = node.rank, node.name, node.trainable
    local count = steps[rank][node.graph_id] or 0
    of[rank] = of[rank] or {}
    local entry = of[rank][name]
    if not entry then
      entry = { node = node, rank = rank, name = name, count = -1 }
      of[rank][name], order[#order + 1] = entry, entry
    end
    if count > entry.count or count == entry.count and trains and not entry.node.trainable then
      entry.node, entry.count = node, count
    end
    entry.trains, any_trained = entry.trains or trains, any_trained or trains
  end
  if not any_trained then return {}, {} end
  -- ema.fc1.weight beside fc1.weight is a copy of it or its sum of gradients.
  local function is_copy(entry)
    for at in entry.name:gmatch "[%._]()" do
      local original = of[entry.rank][entry.name:sub(at)]
      if original and original.trains then return true end
    end
    return false
  end
  local trained, frozen = {}, {}
  for _, entry in ipairs(order) do
    local list = entry.trains and trained or frozen
    if entry.trains or not is_copy(entry) then list[#list + 1] = entry.node end
  end
  return trained, frozen
end)

--- A function that returns the number of updates between two values of a weight. The optimizer counts them in `global_step`; if
--- that was not dumped, the difference of the step numbers is used, without the steps in which only other graphs ran.
M.updates_between = once(function(s)
  local counters, single, ran = {}, {}, {}
  for node in nodes(s, "@parameter and global_step"):each() do
    if last_part(node.name) == "global_step" then
      counters[node.rank .. " " .. node.graph_id] = node
      -- An optimizer inside a condition has a graph of its own.
      single[node.rank] = single[node.rank] == nil and node
    end
  end
  for _, graph in ipairs(s.graphs) do
    for _, step in ipairs(graph.steps) do
      local now = ran[graph.rank .. " " .. step] or { step = step }
      ran[graph.rank .. " " .. step], now[graph.id] = now, true
    end
  end
  local function count_at(node, step)
    local t = node:value { step = step }
    return t and not t.problem and t.step == step and t.size == 1 and t.stats.mean or nil
  end
  return function(now, before)
    local counter = counters[now.rank .. " " .. now.node.graph_id] or single[now.rank]
    local a, b = counter and count_at(counter, before.step), counter and count_at(counter, now.step)
    if a and b and b > a then return b - a end
    local count = now.step - before.step
    for step = before.step + 1, now.step - 1 do
      local there = ran[now.rank .. " " .. step]
      if there and not there[now.node.graph_id] then count = count - 1 end
    end
    return count
  end
end)

--- A function that tells whether an optimizer may have run between two values of a weight. Behind a condition, as where gradients are
--- summed over several steps, it has a graph of its own that does not run in each step.
M.may_be_updated = once(function(s)
  local updaters, ran = {}, {}
  if s.kind ~= "dump" then return function() return true end end
  for node in nodes(s, "@optimizer and not @parameter and not @constant"):each() do
    updaters[node.rank] = updaters[node.rank] or {}
    updaters[node.rank][node.graph_id] = true
  end
  for _, graph in ipairs(s.graphs) do
    if updaters[graph.rank] and updaters[graph.rank][graph.id] then
      for _, step in ipairs(graph.steps) do ran[graph.rank], ran[graph.rank .. " " .. step] = true, true end
    end
  end
  return function(now, before)
    local own = updaters[now.rank]
    if not own or not ran[now.rank] then return true end
    -- The graph of the optimizer runs after the one that shows the weight.
    local shift = own[now.node.graph_id] and 0 or 1
    for step = before.step + 1 - shift, now.step - shift do
      if ran[now.rank .. " " .. step] then return true end
    end
    return false
  end
end)

--- A function that returns a weight as the forward pass of its step took it, before the update; nil if that was not dumped.
M.before_updates = once(function(s)
  local updates, inputs = {}, {}
  for node in nodes(s, "@optimizer and not @parameter and not @constant"):each() do updates[node.key] = true end
  return function(t)
    local step = t.step
    -- Most dumps hold outputs alone: then no user of the weight need be asked.
    if inputs[step] == nil then inputs[step] = s.kind ~= "dump" or core.has_inputs(s, step) end
    if not inputs[step] then return nil end
    for _, user in ipairs(t.node.users) do
      local slot = tonumber(user.slot:match "^input:(%d+)$")
      if slot and not updates[user.node.key] and not user.node.op:find "^Assign" then
        local taken = user.node:input(slot, { step = t.step })
        if taken and not taken.problem and taken.step == t.step and taken.size == t.size and taken.dtype == t.dtype then return taken end
      end
    end
  end
end)

--- The minimum change of at least one of `n` updates that together changed a weight by `ratio` times its magnitude: n changes by r
--- each give at most (1 + r)^n - 1.
function M.least_ratio(ratio, n)
  return n <= 1 and ratio or (1 + ratio) ^ (1 / n) - 1
end

--- The previous value of a tensor, or nil. If the value exists but cannot be read, the second result is the verdict to return.
---@return msdbg.Tensor? before
---@return { not_checked: string }? unread
function M.previous(t)
  local before = t:previous()
  local problem = before and before.problem
  if not problem then return before end
  return nil, { not_checked = string.format("previous step %d cannot be used: %s", before.step, problem) }
end

--- A table for what the rules of a check find out about the tensor that they judge: each rule gets the same one, until the next tensor.
---@return table facts
function M.facts_of(ctx) return ctx.shared.facts end

--- M.previous() for the tensor that the rules of a check judge, asked once.
function M.previous_of(ctx, t)
  local facts = M.facts_of(ctx)
  if not facts.previous then facts.previous = { M.previous(t) } end
  return facts.previous[1], facts.previous[2]
end

--- Values of a tensor in earlier dumped steps, nearest first, at most `most`. Skips values that cannot be read.
---@return msdbg.Tensor[]
function M.earlier(t, most)
  local list, before = {}, t:previous()
  while before and #list < most do
    if not before.problem then list[#list + 1] = before end
    before = before:previous()
  end
  return list
end

--- The nodes whose values optimizers take as gradients: the operators before the optimizer, or, if another graph computes the
--- gradients, the optimizer's own.
---@return msdbg.Node[] operators
---@return fun(node: msdbg.Node): table<string, msdbg.Node>? weights_of  the weight of each slot that is a gradient
M.gradients = once(function(s)
  local list, weights = {}, {}
  if not has_operators(s) then return list, function() end end
  for weight in nodes(s, "@weight"):each() do
    local node, slot = weight:gradient()
    if node then
      local key = node.key
      if not weights[key] then
        weights[key] = {}
        list[#list + 1] = node
      end
      weights[key][slot] = weight
    end
  end
  return list, function(node) return weights[node.key] end
end)

--- A function that returns a number that grows with the position in execution order where the forward pass first uses a weight, or
--- nil. Graphs follow each other.
M.depths = once(function(s)
  local depth = {}
  for node in nodes(s, "@weight"):each() do
    local rank, name = node.rank, node.name
    depth[rank] = depth[rank] or {}
    if not depth[rank][name] then
      local reader, place = node:first_use()
      if reader then depth[rank][name] = reader.key - reader.key % 0x100000000 + place end
    end
  end
  return function(node) return depth[node.rank] and depth[node.rank][node.name] end
end)

local function value_of(node, step)
  local t = node:value { step = step }
  return t and not t.problem and t.step == step and t.size == 1 and t.stats.mean or nil
end

-- The value of a parameter that the operators of a step read, before anything wrote it.
local function value_before(node, step)
  for _, user in ipairs(node.users) do
    local slot = tonumber(user.slot:match "^input:(%d+)$")
    if slot and not user.node.op:find "^Assign" then
      local t = user.node:input(slot, { step = step })
      if t and not t.problem and t.step == step and t.size == 1 and t.stats.mean then return t.stats.mean end
    end
  end
end

-- The nodes of each loss scale; several graphs may use the same one.
local loss_scale_nodes = once(function(s)
  local same, order = {}, {}
  for node in nodes(s, "@parameter and scal"):each() do
    local name = node.rank .. " " .. node.name
    if M.is_loss_scale(node) then
      if not same[name] then
        same[name] = {}
        order[#order + 1] = same[name]
      end
      table.insert(same[name], node)
    end
  end
  return order
end)

-- If the graph with the optimizer has no data although others do, a condition skipped it: there was no update.
local function steps_with_update(s)
  local runs, trains = {}, {}
  for node in nodes(s, "@weight"):each() do
    if node.trainable then trains[node.rank .. " " .. node.graph_id] = true end
  end
  for _, graph in ipairs(s.graphs) do
    for _, step in ipairs(trains[graph.rank .. " " .. graph.id] and graph.steps or {}) do runs[graph.rank .. " " .. step] = true end
  end
  return runs, next(trains) ~= nil
end

--- Where the update of a step was skipped because gradients had overflowed: { rank =, step =, from =, to = }, by step; `from` and
--- `to` are the loss scale before and after. A dynamic loss scale finds its value in this way.
---@return table[] skips
---@return table[] scales  { node =, rank =, first =, last =, judged = } for each; `judged`: number of steps in which it is known
function M.loss_scale_skips(s)
  local skips, scales = {}, {}
  local order = loss_scale_nodes(s)
  if #order == 0 then return skips, scales end
  local updates, trains = steps_with_update(s)
  for _, list in ipairs(order) do
    local rank = list[1].rank
    local scale, last, last_step = { node = list[1], rank = rank, judged = 0 }, nil, nil
    for _, step in ipairs(s.steps) do
      local now, before
      for _, node in ipairs(list) do
        now, before = now or value_of(node, step), before or value_before(node, step)
      end
      if not before and last_step == step - 1 then before = last end
      if now then
        scale.first, scale.last = scale.first or before or now, now
        local missing = trains and not updates[rank .. " " .. step]
        if before or missing then scale.judged = scale.judged + 1 end
        if before and now < before or missing then
          skips[#skips + 1] = { rank = rank, step = step, from = before or now, to = now }
        end
        last, last_step = now, step
      end
    end
    if scale.first then scales[#scales + 1] = scale end
  end
  table.sort(skips, function(a, b) return a.step < b.step or a.step == b.step and a.rank < b.rank end)
  return skips, scales
end

--- nil without a loss scale. Otherwise a function that tests whether the loss scale handles NaN or Inf in a tensor: the tensor is
--- in the backward pass or after it, and the weights of the step are finite. Gradients that overflow under a loss scale are checked
--- before they are used, and then the update is skipped.
---@return (fun(t: msdbg.Tensor): boolean)?
function M.answered_overflow(s)
  if #loss_scale_nodes(s) == 0 then return nil end
  local behind, queue = {}, {}
  local function reach(node)
    local key = node.key
    if behind[key] or node.kind ~= "operator" then return end
    behind[key], queue[#queue + 1] = true, node
  end
  for node in nodes(s, "@gradient"):each() do reach(node) end
  local at = 1
  while queue[at] do
    for _, user in ipairs(queue[at].users) do reach(user.node) end
    at = at + 1
  end
  local weights, sound = {}, {}
  for node in nodes(s, "@weight"):each() do weights[#weights + 1] = node end
  local function weights_are_finite(rank, step)
    local any = false
    for _, node in ipairs(weights) do
      local t = node.rank == rank and node:value { step = step }
      if t and not t.problem and t.step == step then
        any = true
        local stats = t.stats
        if (stats.nan_count or 0) + (stats.pos_inf_count or 0) + (stats.neg_inf_count or 0) > 0 then return false end
      end
    end
    return any
  end
  return function(t)
    if not behind[t.node.key] then return false end
    local place = t.rank .. " " .. t.step
    if sound[place] == nil then sound[place] = weights_are_finite(t.rank, t.step) end
    return sound[place]
  end
end

return M
