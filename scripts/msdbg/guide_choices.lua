-- Chapters of the guide about what a person chose: hyper-parameters, use of the API. See guide_chapters.lua.
local causes = require "msdbg.guide_causes"
local tools = require "msdbg.guide_tools"
local training = require "msdbg.training"

local fmt, ipairs, math, table, type = string.format, ipairs, math, table, type
local nodes, value, bad_count, change, count, some =
  tools.nodes, tools.value, tools.bad_count, tools.change, tools.count, tools.some

local M = {}

-- ---- hyper-parameters -----------------------------------------------------------------------------------------------

-- A change of less than a millionth is rounding in float32.
local SMALL_UPDATE = 1e-6

-- The learning rates and other settings, each with the value of the first step and, if it changed, of the last one.
local function show_settings(checklist)
  local s, shown, zero, rates = checklist.session, {}, {}, 0
  local function note(text)
    if not shown[text] then checklist:note(text) end
    shown[text] = true
  end
  local function rate(name, is_zero)
    rates = rates + 1
    if is_zero then zero[#zero + 1] = name end
  end
  for _, setting in ipairs(s:settings { steps = checklist.steps }.settings) do
    local of_rate = setting.role == "learning_rate"
    if setting.elements > 1 then
      local t = value(s:node(setting.node), checklist.steps[1])
      if t then
        note(fmt("%s is a schedule of %d values, %.6g to %.6g", setting.name, t.size, t.stats.min or 0, t.stats.max or 0))
        rate(setting.name, t.stats.max == 0 and t.stats.min == 0)
      end
    end
    for _, series in ipairs(setting.series) do
      local values = {}
      for i = 1, #checklist.steps do values[#values + 1] = series.values[i] end
      local first, last = values[1], values[#values]
      if first then
        local moved = first ~= last and setting.role ~= "step_counter"
        note(fmt(moved and "%s = %.6g in step %d, %.6g in step %d" or "%s = %.6g", setting.name, first, checklist.steps[1], last,
          checklist.steps[#checklist.steps]))
        local largest = 0
        for _, x in ipairs(values) do largest = math.max(largest, math.abs(x)) end
        if of_rate then rate(setting.name, largest == 0) end
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
        if before then same = tools.same_values(now, before) end
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
