-- Chapters of the guide about what a person chose: data, hyper-parameters, use of the API. See guide_chapters.lua.
local tools = require "msdbg.guide_tools"

local fmt, ipairs, next, type = string.format, ipairs, next, type
local nodes, value, bad_count, change, count, worst, some =
  tools.nodes, tools.value, tools.bad_count, tools.change, tools.count, tools.worst, tools.some

local DATA = "@parameter and not @weight and not @optimizer"
local FLOAT = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

local M = {}

-- ---- data and its processing ----------------------------------------------------------------------------------------

-- Fewer values may be equal by chance, like the labels of a batch of two.
local FEW = 16

-- A fingerprint from statistics: equal ones with different data are possible in theory, so equality is confirmed on elements.
-- nil: not known, because there are no elements and the statistics agree or say too little.
local function same_values(a, b)
  local x, y = a.stats, b.stats
  for _, name in ipairs { "count", "min", "max", "mean", "std", "nan_count" } do
    if x[name] and y[name] and x[name] ~= y[name] then return false end
  end
  local ratio = change(a, b)
  if ratio then return ratio == 0 and bad_count(x) == 0 end
  return nil
end

function M.data(talk)
  local s, steps = talk.session, talk.steps
  local inputs = nodes(s, DATA)
  if #inputs == 0 then
    return talk:unknown("the graph names no data inputs (parameters that are neither weights nor optimizer state)",
      "look at the batches in the training script, before they are handed to the network")
  end
  local sound, missing, uncertain = 0, {}, false
  for node in inputs:each() do
    local seen, before, repeated, found = false, nil, {}, talk.found
    for _, step in ipairs(steps) do
      local t = value(node, step)
      if t and t.step == step then
        seen = true
        local stats, name = t.stats, fmt("%s in step %d", node.name, step)
        if bad_count(stats) > 0 then
          talk:finding(fmt("the data hold %d NaN or Inf of %d values: %s", bad_count(stats), stats.count, name),
            "clean the data set, or the step that normalises it (a division by a zero deviation is common)", fmt("show %s", node.name),
            step)
        elseif stats.count >= FEW and stats.min and stats.min == stats.max then
          talk:finding(fmt("all %d values are %.6g: %s", stats.count, stats.min, name),
            "see whether the pipeline loads real samples; a constant batch teaches nothing", fmt("show %s", node.name), step)
        elseif FLOAT[t.dtype] and stats.abs_mean and stats.abs_mean > 50 then
          talk:finding(fmt("values are large, mean of |x| %.4g: %s", stats.abs_mean, name),
            "scale the inputs (for images: divide by 255, then normalise)", fmt("show %s", node.name), step)
        end
        if before and stats.count >= FEW then
          local same = same_values(t, before)
          if same then repeated[#repeated + 1] = step end
          if same == nil then uncertain = true end
        end
        before = t
      end
    end
    if #repeated > 0 then
      talk:finding(fmt("%s is the same as in the step before: step %s", node.name, table.concat(repeated, ", ")),
        "see that the data set is shuffled and its iterator moves on; on purpose it is fine", fmt("show %s", node.name))
    elseif not seen then
      missing[#missing + 1] = node.name
    elseif talk.found == found then
      sound = sound + 1
    end
  end
  if #missing > 0 then
    talk:unknown(fmt("%s never dumped: %s", #missing == 1 and "a data input was" or count(#missing, "data input") .. " were",
      some(missing)),
      "dump the inputs as well (input_output 0), or check them in the script")
  end
  if sound > 0 then
    talk:fine(fmt("%s over %s: finite, varied, %s", count(sound, "data input"), count(#steps, "step"),
      uncertain and "whether each batch is new is not known" or "each batch new"))
  end
end

function M.processing(talk)
  talk:ask {
    key = "processing",
    question = "Were augmentation, normalisation, batch order and label encoding compared with the reference, or "
      .. "checked by eye on a few samples?",
    open = "whether the processing of the data agrees with the reference",
    yes = "the processing of the data was checked by hand",
    no = "compare a few samples behind the whole pipeline with the reference: shape, order of channels, mean and deviation, labels",
  }
end

-- ---- hyper-parameters -----------------------------------------------------------------------------------------------

-- A step that changes weights by more than a tenth destroys what was learnt; less than a millionth is rounding in float32.
local LARGE_UPDATE, SMALL_UPDATE = 0.1, 1e-6

function M.hyper_parameters(talk)
  local s, steps = talk.session, talk.steps
  for node in nodes(s, "@optimizer and @parameter"):each() do
    local t = value(node, steps[1])
    if t and t.size == 1 and t.stats.mean then talk:note(fmt("%s = %.6g", node.name, t.stats.mean)) end
  end
  -- Biases and other vectors begin at zero or one, so that their first relative changes say nothing.
  local large, small, looked, unsound = worst(), worst(), 0, 0
  local first_large
  for node in nodes(s, "@weight"):each() do
    for i = 2, #steps do
      local now, before = value(node, steps[i]), value(node, steps[i - 1])
      local sound = now and before and bad_count(now.stats) + bad_count(before.stats) == 0
      if now and before and not sound then unsound = unsound + 1 end
      if sound and now.step == steps[i] and #now.shape > 1 then
        local ratio = change(now, before)
        if ratio then looked = looked + 1 end
        if ratio and ratio > LARGE_UPDATE then
          large.add(node.name, ratio, steps[i], true)
          first_large = math.min(first_large or steps[i], steps[i])
        end
        if ratio and ratio > 0 and ratio < SMALL_UPDATE then small.add(node.name, ratio, steps[i], false) end
      end
    end
  end
  if next(large.found) then
    talk:finding(fmt("weights change by more than %g %% in a step: %s", LARGE_UPDATE * 100,
      some(large.list "%s (%.3g times its size in step %d)")),
      "lower the learning rate (try a tenth), warm it up, or clip the gradients", "watch @weight WCL abs_mean_update_ratio_gt=0.1",
        first_large)
  end
  if next(small.found) then
    talk:finding(fmt("weights hardly change, less than %g of their size: %s", SMALL_UPDATE, some(small.list "%s (%.3g in step %d)")),
      "raise the learning rate, or see whether the loss is divided too often", "watch @weight WCS abs_mean_update_ratio_lt=1e-6")
  end
  if looked == 0 then
    talk:unknown("no weight has finite values in two consecutive dumped steps", "dump two steps in a row, parameters included")
  elseif not next(large.found) and not next(small.found) then
    talk:fine(fmt("%s of weights, all between %g and %g of their size%s", count(looked, "update"), SMALL_UPDATE, LARGE_UPDATE,
      unsound > 0 and fmt("; %d more could not be judged, they hold NaN or Inf", unsound) or ""))
  end
  M.loss(talk)
end

--- The loss over the steps, from the dump: scalars that a loss operator put out.
function M.loss(talk)
  local s, series = talk.session, {}
  for node in nodes(s, "@loss"):each() do
    if #series > 0 then break end
    for _, step in ipairs(talk.steps) do
      local t = s:tensor(node.name .. ":0", { step = step })
      if t and not t.problem and t.size == 1 then
        local stats = t.stats
        local number = (stats.nan_count or 0) > 0 and "nan" or bad_count(stats) > 0 and "inf" or stats.mean or stats.max
        if number then series[#series + 1] = { step = step, value = number } end
      end
    end
  end
  if #series == 0 then return talk:unknown("no scalar output of a loss operator was dumped", "give the printed losses with --loss FILE") end
  local words = {}
  for i, point in ipairs(series) do words[i] = type(point.value) == "number" and fmt("%.5g", point.value) or point.value end
  local first, last = series[1].value, series[#series].value
  local text = fmt("loss over steps %d to %d: %s", series[1].step, series[#series].step, some(words))
  if type(last) ~= "number" then
    talk:finding(text .. fmt("; it is %s in step %d", last, series[#series].step),
      "the chapter on the graph names the operator where it began")
  elseif type(first) == "number" and last > 2 * first then
    talk:finding(text .. "; it grows", "lower the learning rate first; then look at gradients")
  else
    talk:fine(text)
  end
end

-- ---- use of the API -------------------------------------------------------------------------------------------------

function M.api(talk)
  local s, steps = talk.session, talk.steps
  local frozen, looked = {}, 0
  for node in nodes(s, "@weight"):each() do
    local pairs_seen, equal = 0, 0
    for i = 2, #steps do
      local now, before = value(node, steps[i]), value(node, steps[i - 1])
      local same
      if now and before and now.step == steps[i] then same = same_values(now, before) end
      if same ~= nil then pairs_seen = pairs_seen + 1 end
      if same then equal = equal + 1 end
    end
    if pairs_seen > 0 then
      looked = looked + 1
      if equal == pairs_seen then frozen[#frozen + 1] = node.name end
    end
  end
  if #frozen > 0 then
    talk:finding("trained parameters never change: " .. some(frozen),
      "see requires_grad, that the optimizer gets trainable_params(), and that no operator on the way has a gradient of zero",
        "watch @weight WNC")
  elseif looked > 0 then
    talk:fine(looked == 1 and "the trained parameter changes" or fmt("all %d trained parameters change", looked))
  else
    talk:unknown("whether parameters are updated: no two steps of them were dumped", "dump two steps in a row")
  end
  if #nodes(s, "op:Dropout* or op:BatchNorm*") > 0 then
    talk:ask {
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
