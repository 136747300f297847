-- Chapters of the guide about what a person chose: data, hyper-parameters, use of the API. See guide_chapters.lua.
local causes = require "msdbg.guide_causes"
local tools = require "msdbg.guide_tools"
local training = require "msdbg.training"

local fmt, ipairs, math, pcall, table, type = string.format, ipairs, math, pcall, table, type
local nodes, value, bad_count, change, count, some, steps_text =
  tools.nodes, tools.value, tools.bad_count, tools.change, tools.count, tools.some, tools.steps_text

local FLOAT = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

local M = {}

-- ---- data and its processing ----------------------------------------------------------------------------------------

-- Fewer values may be equal by chance, like the labels of a batch of two.
local FEW = 16
-- Images of 0 to 255 have a mean around 100, normalised ones below 1.
local LARGE = 50

-- A fingerprint from statistics. Different data can have the same one, so equality is confirmed on elements.
-- nil: unknown, because there are no elements, and the statistics agree or are not enough.
local function same_values(a, b)
  local x, y = a.stats, b.stats
  for _, name in ipairs { "count", "min", "max", "mean", "std", "nan_count" } do
    if x[name] and y[name] and x[name] ~= y[name] then return false end
  end
  local ratio = change(a, b)
  if ratio then return ratio == 0 and bad_count(x) == 0 end
  return nil
end

-- Only two values, as in an attention mask: 0 and a large negative number.
local function is_mask(t)
  local ok, mask = pcall(t.eval, t, "count(x == min(x)) + count(x == max(x)) == size")
  return ok and mask == true
end

-- The fault of one value of an input: its kind, and a text.
local function fault_of(t)
  local stats = t.stats
  local bad = bad_count(stats)
  if bad > 0 then return "bad", fmt("%d NaN or Inf of %d values", bad, stats.count) end
  if stats.count < FEW or not stats.min then return nil end
  if stats.min == stats.max then return "constant", fmt("all %d values are %.6g", stats.count, stats.min) end
  if FLOAT[t.dtype] and (stats.abs_mean or 0) > LARGE and not is_mask(t) then
    return "large", fmt("values are large, mean of |x| %.4g", stats.abs_mean)
  end
end

local ADVICE = {
  bad = "clean the data set, or the step that normalises it (a division by a zero deviation is common)",
  constant = "check whether the pipeline loads real samples; a constant batch teaches nothing",
  large = "scale the inputs (for images: divide by 255, then normalise)",
}

-- One input over the steps: its faults, each once, and the steps that repeat the batch of the step before.
local function look_at_input(checklist, node)
  local seen = { values = 0, compared = 0, repeated = {}, faults = {}, order = {} }
  local before
  for _, step in ipairs(checklist.steps) do
    local t = value(node, step)
    if t and t.step == step then
      seen.values = seen.values + 1
      local kind, words = fault_of(t)
      if kind then
        if not seen.faults[kind] then
          seen.faults[kind] = { words = words, steps = {} }
          seen.order[#seen.order + 1] = kind
        end
        table.insert(seen.faults[kind].steps, step)
      end
      -- Steps that are not consecutive may hold the same batch from two epochs.
      if before and before.step == step - 1 and t.stats.count >= FEW then
        local same = same_values(t, before)
        if same ~= nil then seen.compared = seen.compared + 1 end
        if same then seen.repeated[#seen.repeated + 1] = step end
      end
      before = t
    end
  end
  return seen
end

-- True if a constant input leaves nothing to learn: labels of classes, or the only input. Masks and type ids may well be constant.
local function says_nothing(inputs, node, checklist)
  for _, user in ipairs(node.users) do
    if user.node.op:find "CrossEntropy" and not (node.outputs[1].dtype or ""):find "float" then return true end
  end
  for other in inputs:each() do
    if other.rank == node.rank and other.graph_id == node.graph_id and other.name ~= node.name then
      for _, step in ipairs(checklist.steps) do
        local t = value(other, step)
        if t and t.stats.min ~= t.stats.max then return false end
      end
    end
  end
  return true
end

function M.data(checklist)
  local s = checklist.session
  local inputs = training.inputs(s)
  if #inputs == 0 then
    return checklist:unknown("the graph names no data inputs (parameters that are neither weights nor optimizer state)",
      "look at the batches in the training script, before they are handed to the network")
  end
  local trains = {}
  for node in nodes(s, "@weight"):each() do
    if node.trainable then trains[node.rank .. " " .. node.graph_id] = true end
  end
  local jumps, others = {}, 0
  for _, hit in ipairs(checklist.result_of["value-jump"] or {}) do
    local data = inputs:filter(function(node) return node.name == hit.node and node.rank == hit.rank end)
    if #data > 0 then jumps[hit.rank .. " " .. hit.node] = true else others = others + 1 end
  end
  checklist.told["value-jump"] = others == 0
  local sound, missing, judged, several = 0, {}, true, false
  for node in inputs:each() do
    local seen, found = look_at_input(checklist, node), checklist.found
    several = several or seen.values > 1
    for _, kind in ipairs(seen.order) do
      local fault = seen.faults[kind]
      local text = fmt("%s: %s in %s", fault.words, node.name, steps_text(fault.steps))
      if kind == "bad" then text = "the data hold " .. text end
      if kind == "large" and jumps[node.rank .. " " .. node.name] then
        break  -- reported below
      elseif kind == "large" and checklist.learns then
        checklist:note(text .. "; the loss falls anyway")
      elseif kind == "constant" and not says_nothing(inputs, node, checklist) then
        checklist:note(text)
      else
        checklist:finding(text, ADVICE[kind], fmt("show %s", node.name), fault.steps[1])
      end
    end
    if #seen.repeated > 0 and trains[node.rank .. " " .. node.graph_id] and #seen.repeated == seen.compared
      and checklist.result_of["frozen-inputs"] then
      checklist:finding(fmt("%s is the same as in the step before: %s", node.name, steps_text(seen.repeated)),
        "check that the data set is shuffled and its iterator advances; ignore this if it is on purpose", fmt("show %s", node.name))
      checklist.told["frozen-inputs"] = true
    elseif #seen.repeated > 0 then  -- a part of the steps or inputs (masks), or a network that only runs forward
      checklist:note(fmt("%s is the same as in the step before: %s", node.name, steps_text(seen.repeated)))
    elseif seen.values == 0 then
      missing[#missing + 1] = node.name
    elseif checklist.found == found then
      sound = sound + 1
      if seen.compared == 0 and (node.outputs[1].shape and #node.outputs[1].shape > 1) then judged = false end
    end
  end
  if #missing > 0 then
    checklist:unknown(fmt("%s never dumped: %s", #missing == 1 and "a data input was" or count(#missing, "data input") .. " were",
      some(missing)),
      "dump the inputs as well (input_output 0), or check them in the script")
  end
  for _, hit in ipairs(checklist.result_of["value-jump"] or {}) do
    if jumps[hit.rank .. " " .. hit.node] then
      checklist:finding(fmt("%s leaves its range in step %d: %s", hit.node, hit.step, hit.details.message),
        "look at the batch of this step and at what made it", fmt("show %s", hit.node), hit.step)
    end
  end
  checklist:rules { "frozen-inputs", "labels-independent" }
  if sound > 0 then
    checklist:fine(fmt("%s over %s: finite, varied%s", count(sound, "data input"), count(#checklist.steps, "step"),
      not several and "" or judged and ", each batch new" or ", whether each batch is new is not known"))
  end
end

function M.processing(checklist)
  checklist:ask {
    key = "processing",
    question = "Were augmentation, normalisation, batch order and label encoding compared with the reference, or "
      .. "checked by eye on a few samples?",
    open = "whether the processing of the data agrees with the reference",
    yes = "the processing of the data was checked by hand",
    no = "compare a few samples after the whole pipeline with the reference: shape, order of channels, mean and deviation, labels",
  }
end

-- ---- hyper-parameters -----------------------------------------------------------------------------------------------

-- A change of less than a millionth is rounding in float32.
local SMALL_UPDATE = 1e-6

-- The learning rates and other settings, each with the value of the first step and, if it changed, of the last one.
local function show_settings(checklist)
  local shown, zero, rates = {}, {}, 0
  local function note(text)
    if not shown[text] then checklist:note(text) end
    shown[text] = true
  end
  for _, setting in ipairs(training.settings(checklist.session)) do
    local node, values, schedule = setting.node, {}, nil
    for _, step in ipairs(checklist.steps) do
      local t = value(node, step)
      if t and t.step == step then
        if t.size == 1 and t.stats.mean then values[#values + 1] = t.stats.mean end
        if t.size > 1 and setting.rate then schedule = schedule or t end
      end
    end
    if schedule then
      rates = rates + 1
      local stats = schedule.stats
      note(fmt("%s is a schedule of %d values, %.6g to %.6g", node.name, schedule.size, stats.min or 0, stats.max or 0))
      if stats.max == 0 and stats.min == 0 then zero[#zero + 1] = node.name end
    elseif #values > 0 then
      local first, last = values[1], values[#values]
      local moved = first ~= last and not node.name:find "global_step"
      note(fmt(moved and "%s = %.6g in step %d, %.6g in step %d" or "%s = %.6g", node.name, first, checklist.steps[1], last,
        checklist.steps[#checklist.steps]))
      if setting.rate then
        rates = rates + 1
        local largest = 0
        for _, x in ipairs(values) do largest = math.max(largest, math.abs(x)) end
        if largest == 0 then zero[#zero + 1] = node.name end
      end
    end
  end
  if #zero > 0 then
    checklist.zero_rate = #zero == rates
    checklist:finding(fmt("%s is 0%s", some(zero), #zero < rates and "" or ": nothing is learnt"), "set a learning rate; check its schedule",
      nil, checklist.steps[1])
  end
end

-- How far the updates moved the weights, between consecutive steps of the dump.
local function look_at_updates(checklist)
  local between = training.updates_between(checklist.session)
  local seen = { looked = 0, zero = 0, unsound = 0, small = 0, low = math.huge, high = 0, longest = 1 }
  for _, node in ipairs(checklist.trained) do
    for _, pair in ipairs(checklist.pairs) do
      local before, now = value(node, pair[1]), value(node, pair[2])
      local there = before and now and now.step == pair[2] and before.step == pair[1] and #now.shape > 1
      if there and bad_count(now.stats) + bad_count(before.stats) > 0 then
        seen.unsound = seen.unsound + 1
      elseif there then
        local ratio, n = change(now, before), between(now, before)
        if ratio then seen.looked, seen.longest = seen.looked + 1, math.max(seen.longest, n) end
        if ratio == 0 then
          seen.zero = seen.zero + 1
        elseif ratio then
          local one = training.least_ratio(ratio, n)
          seen.low, seen.high = math.min(seen.low, one), math.max(seen.high, one)
          if one < SMALL_UPDATE then seen.small = seen.small + 1 end
        end
      end
    end
  end
  return seen
end

function M.hyper_parameters(checklist)
  show_settings(checklist)
  causes.report(checklist, { rate_too_large = true })
  local large = checklist:rules { "update-too-large" }
  local seen = look_at_updates(checklist)
  local moved = seen.looked - seen.zero
  local unsound = seen.unsound > 0 and fmt("; %d more could not be judged, they hold NaN or Inf", seen.unsound) or ""
  if seen.looked == 0 then
    checklist:unknown("no weight has finite values in two consecutive dumped steps", "dump two steps in a row, parameters included")
  elseif moved > 0 and seen.small == moved and not checklist.learns then
    local vanish = checklist.result_of["vanishing-gradient"] or checklist.result_of["vanishing-by-depth"]
    checklist:finding(fmt("weights hardly change, in %s by less than %g of their size", count(moved, "update"), SMALL_UPDATE),
      vanish and "the gradients vanish on the way to the input, see the chapter on the graph"
        or "raise the learning rate, or check whether the loss is divided too often", "watch @weight WCS abs_mean_update_ratio_lt=1e-6",
      checklist.steps[1])
  elseif moved == 0 then
    checklist:note(fmt("%s of weights, all of them zero%s", count(seen.looked, "update"), unsound))
  elseif not large then
    checklist:fine(fmt("%s of weights, each by %.2g to %.2g of its size%s%s%s", count(moved, "update"), seen.low, seen.high,
      seen.longest > 1 and fmt(" per step (up to %d steps lie between two dumped ones)", seen.longest) or "",
      seen.zero > 0 and fmt("; %d more changed nothing", seen.zero) or "",
      unsound))
  end
  M.loss(checklist)
end

--- The loss over the steps, from the dump: scalar outputs of loss operators, by step.
---@return { node: string, [integer]: { step: integer, value: number|string } }
function M.losses(s, steps)
  for node in nodes(s, "@loss"):each() do
    local series = {}
    for _, step in ipairs(steps) do
      local t = node:output(0, { step = step })
      if t and not t.problem and t.step == step and t.size == 1 then
        local stats = t.stats
        local number = (stats.nan_count or 0) > 0 and "nan" or bad_count(stats) > 0 and "inf" or stats.mean or stats.max
        if number then series[#series + 1] = { step = step, value = number } end
      end
    end
    if #series > 0 then
      series.node = node.name
      return series
    end
  end
  return {}
end

--- True if the loss of the later half is well below that of the first steps.
function M.falls(series)
  local n = #series
  local first, last, half = 0, 0, math.floor(n / 2)
  for i = 1, half do
    local a, b = series[i].value, series[n + 1 - i].value
    if type(a) ~= "number" or type(b) ~= "number" then return false end
    first, last = first + a, last + b
  end
  return half > 0 and first > 0 and last < 0.7 * first
end

function M.loss(checklist)
  local series = checklist.losses
  if #series == 0 then
    return checklist:unknown("no scalar output of a loss operator was dumped", "give the printed losses with --loss FILE")
  end
  local words, highest = {}, nil
  for i, point in ipairs(series) do
    words[i] = type(point.value) == "number" and fmt("%.5g", point.value) or point.value
    if type(point.value) == "number" and i <= math.ceil(#series / 2) then highest = math.max(highest or point.value, point.value) end
  end
  local first, last = series[1].value, series[#series].value
  local text = fmt("loss over steps %d to %d: %s", series[1].step, series[#series].step, table.concat(words, ", "))
  local told = checklist:rules { "loss-explosion", "loss-not-decreasing" }
  checklist:rules { "loss-at-chance", "softmax-before-loss", "softmax-axis", "equal-outputs", "collapsed-layer" }
  local cause = causes.of_node(checklist, series.node, series[#series].step)
  if type(last) ~= "number" and cause then
    checklist:note(fmt("%s; it is %s in step %d and follows from %s", text, last, series[#series].step, cause.sentence))
  elseif type(last) ~= "number" then
    checklist:finding(text .. fmt("; it is %s in step %d", last, series[#series].step),
      "the chapter on the graph names the operator where it began")
  elseif told then
    checklist:note(text)
  elseif type(first) == "number" and last > 2 * highest and last > 1 and #series > 2 and not checklist.adversarial then
    checklist:finding(text .. "; it grows", "look at the updates and the gradients of these steps, and at the learning rate")
  else
    checklist:fine(text)
  end
end

-- ---- use of the API -------------------------------------------------------------------------------------------------

function M.api(checklist)
  local s = checklist.session
  checklist:rules { "optimizer-without-use" }
  local still, looked = {}, 0
  for _, node in ipairs(checklist.trained) do
    local pairs_seen, equal, before = 0, 0, nil
    for _, step in ipairs(checklist.steps) do
      local now = value(node, step)
      if now and now.step == step then
        local same
        if before then same = same_values(now, before) end
        if same ~= nil then pairs_seen = pairs_seen + 1 end
        if same then equal = equal + 1 end
        before = now
      end
    end
    if pairs_seen > 0 then
      looked = looked + 1
      if equal == pairs_seen then still[#still + 1] = node.name end
    end
  end
  local all_still = #still > 0 and #still == looked
  if all_still and (checklist.zero_rate or #checklist.skips > 0) then
    checklist.told["unchanged-weight"] = true
    checklist:note("no trained parameter changes, since " .. (checklist.zero_rate and "the learning rate is 0"
      or "every update was left out (see the chapter on mixed precision)"))
  elseif #still > 0 then
    checklist.told["unchanged-weight"] = true
    local text = "trained parameters never change: " .. some(still)
    local hits = checklist.result_of["unchanged-weight"]
    local behind = hits and causes.behind(checklist.causes, hits)
    if behind then
      checklist:note(fmt("%s; %s follows from %s", text, hits[1].node, behind))
    elseif tools.have_gradients(checklist, still) then
      checklist:finding("trained parameters never change, though their gradients are not zero: " .. some(still),
        "raise the learning rate: these updates are too small for the precision of the weights", "layers")
    else
      checklist:finding(text,
        "check whether a gradient reaches them: a dead activation, stop_gradient, or a loss that does not depend on them stops it",
        "watch @weight WNC")
    end
  elseif looked > 0 then
    checklist:fine(looked == 1 and "the trained parameter changes" or fmt("all %d trained parameters change", looked))
  else
    checklist:unknown("whether parameters are updated: no two steps of them were dumped", "dump two steps in a row")
  end
  checklist:rules { "unchanged-weight" }
  if not checklist:rules { "untrained-weight" } and #checklist.frozen > 0 then
    local words = {}
    for i, node in ipairs(checklist.frozen) do words[i] = node.name end
    checklist:note(fmt("%s no optimizer updates: %s; fine if frozen on purpose", count(#words, "parameter that", "parameters that"),
      some(words)))
  end
  if #nodes(s, "op:Dropout* or op:BatchNorm*") > 0 then
    checklist:ask {
      key = "mode",
      question = "The network has dropout or batch normalisation. "
        .. "Is set_train(True) called for training and set_train(False) for evaluation?",
      open = "whether set_train is called for training and for evaluation (there is dropout or batch normalisation)",
      yes = "set_train is called for both modes",
      no = "call set_train(True) before training and set_train(False) before evaluation",
    }
  end
end

return M
