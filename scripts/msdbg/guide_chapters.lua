-- The chapters of the guide: what each one looks at. Order and subjects are those of MindSpore's guide to accuracy problems.
--
-- A chapter is a function of the talk (guide.lua): it reports what it found with talk:finding, talk:fine and talk:unknown, and
-- asks a person only what no dump can answer.
local fmt, ipairs, next, pcall, type = string.format, ipairs, next, pcall, type

local DATA = "@parameter and not @weight and not @optimizer"
local HALF = { float16 = true, bfloat16 = true }
local FLOAT = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

local M = {}

--- Nodes of a selector; an empty list where the network has none.
local function nodes(s, selector)
  return s:nodes(selector, { optional = true })
end

local function value(node, step)
  local t = node:value { step = step }
  return t and not t.problem and t or nil
end

local function bad_count(stats)
  return (stats.nan_count or 0) + (stats.pos_inf_count or 0) + (stats.neg_inf_count or 0)
end

--- Mean change against `before`; nil where elements are missing (a dump of statistics only).
local function change(now, before)
  local ok, ratio = pcall(now.change_ratio, now, before)
  return ok and ratio or nil
end

--- The end of a node's name that still says which one it is, so that it can be typed.
local function short(s, name)
  local tail = name:match "[^/]+/[^/]+$"
  return tail and tail ~= name and pcall(s.node, s, tail) and tail or name
end

local function count(n, one, many)
  return fmt("%d %s", n, n == 1 and one or many or one .. "s")
end

--- Keeps for each name the place where a number is worst: worst{ add(name, number, step) }, :list(format).
local function worst()
  local names, found = {}, {}
  return {
    found = found,
    add = function(name, number, step, above)
      if not found[name] then names[#names + 1] = name end
      if not found[name] or above and number > found[name][1] or not above and number < found[name][1] then found[name] = { number, step } end
    end,
    list = function(template)
      local words = {}
      for i, name in ipairs(names) do words[i] = fmt(template, name, found[name][1], found[name][2]) end
      return words
    end,
  }
end

--- Node names of a list, the first few.
local function some(list)
  local shown = {}
  for i = 1, math.min(#list, 4) do shown[i] = list[i] end
  if #list > 4 then shown[5] = fmt("and %d more", #list - 4) end
  return table.concat(shown, ", ")
end

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
            "clean the data set, or the step that normalises it (a division by a zero deviation is common)", fmt("show %s", node.name), step)
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
    talk:unknown(fmt("%s never dumped: %s", #missing == 1 and "a data input was" or count(#missing, "data input") .. " were", some(missing)),
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
    question = "Were augmentation, normalisation, batch order and label encoding compared with the reference, or checked by eye on a few samples?",
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
    talk:finding(fmt("weights change by more than %g %% in a step: %s", LARGE_UPDATE * 100, some(large.list "%s (%.3g times its size in step %d)")),
      "lower the learning rate (try a tenth), warm it up, or clip the gradients", "watch @weight WCL abs_mean_update_ratio_gt=0.1", first_large)
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
    talk:finding(text .. fmt("; it is %s in step %d", last, series[#series].step), "the chapter on the graph names the operator where it began")
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
      "see requires_grad, that the optimizer gets trainable_params(), and that no operator on the way has a gradient of zero", "watch @weight WNC")
  elseif looked > 0 then
    talk:fine(looked == 1 and "the trained parameter changes" or fmt("all %d trained parameters change", looked))
  else
    talk:unknown("whether parameters are updated: no two steps of them were dumped", "dump two steps in a row")
  end
  if #nodes(s, "op:Dropout* or op:BatchNorm*") > 0 then
    talk:ask {
      key = "mode",
      question = "The network has dropout or batch normalisation. Is set_train(True) called for training and set_train(False) for evaluation?",
      open = "whether set_train is called for training and for evaluation (there is dropout or batch normalisation)",
      yes = "set_train is called for both modes",
      no = "call set_train(True) before training and set_train(False) before evaluation",
    }
  end
end

-- ---- graph ----------------------------------------------------------------------------------------------------------

-- More than nine in ten outputs zero: a ReLU that passes next to nothing also passes next to no gradient.
local MOSTLY_ZERO = 90

function M.graph(talk)
  local s = talk.session
  local result = talk.origin
  local first = result.origins[1]
  if first then
    local frame = first.stack and first.stack[1]
    local where = frame and fmt(" (%s:%d  %s)", frame.file, frame.line, (frame.code or ""):gsub("%s+#.*", "")) or ""
    talk:finding(fmt("first NaN or Inf: %s:%s in step %d, %d of its values%s", short(s, first.node), first.slot, first.step, first.bad_count, where),
      "look at its inputs: a logarithm or division of zero, or an overflow of the product", fmt("show %s", short(s, first.node)), first.step)
  elseif result.not_checked_count > 0 then
    talk:unknown(fmt("no NaN or Inf where it could be looked for; %d tensors could not be judged", result.not_checked_count), "msdbg doctor says why")
  else
    talk:fine("no NaN or Inf in any dumped tensor")
  end
  local dead, looked = worst(), 0
  for node in nodes(s, "@activation and not op:*Softmax"):each() do
    for _, step in ipairs(talk.steps) do
      local t = s:tensor(node.name .. ":0", { step = step })
      if t and not t.problem and t.size > 1 and t.stats.zero_percentage then
        looked = looked + 1
        if t.stats.zero_percentage > MOSTLY_ZERO then dead.add(short(s, node.name), t.stats.zero_percentage, step, true) end
      end
    end
  end
  if next(dead.found) then
    talk:finding("activations are nearly all zero: " .. some(dead.list "%s (%.0f %% in step %d)"),
      "lower the learning rate, look at the biases before them, or use a leaky activation",
      "watch @activation TZ 90")
  elseif looked > 0 then
    talk:fine(fmt("%s of activations, none nearly all zero", count(looked, "value")))
  end
end

-- ---- initial weights ------------------------------------------------------------------------------------------------

-- Dumped parameters are those behind the update of their step: the first ones have been through one.
function M.weights(talk)
  local s, step = talk.session, talk.steps[1]
  local first = talk.origin.origins[1]
  if first and first.kind == "operator" and first.step <= step then
    return talk:unknown(fmt("the first dumped weights are those after step %d, which the fault of the graph had reached", step),
      "look at the checkpoint that the training began with: msdbg ckpt show FILE")
  end
  local odd, looked = {}, 0
  for node in nodes(s, "@weight"):each() do
    local t = value(node, step)
    if t and t.size > 1 then
      looked = looked + 1
      local stats = t.stats
      if bad_count(stats) > 0 then
        odd[#odd + 1] = fmt("%s holds NaN or Inf", node.name)
      elseif stats.min and stats.min == stats.max and #t.shape > 1 then
        odd[#odd + 1] = fmt("%s is %.6g everywhere", node.name, stats.min)
      elseif (stats.abs_mean or 0) > 10 then
        odd[#odd + 1] = fmt("%s has mean |x| %.4g", node.name, stats.abs_mean)
      end
    end
  end
  if looked == 0 then
    return talk:unknown(fmt("no weight of step %d was dumped", step), "dump the parameters, or see msdbg ckpt show on a checkpoint")
  end
  if #odd > 0 then
    talk:finding(fmt("weights after step %d look wrong: %s", step, some(odd)),
      "look at the initialiser, or whether the checkpoint was loaded", "watch @weight WI")
  else
    talk:fine(fmt("%s after step %d: finite, not constant, moderate", count(looked, "weight"), step))
  end
end

-- ---- mixed precision ------------------------------------------------------------------------------------------------

function M.precision(talk)
  local s, half, full = talk.session, 0, 0
  for node in nodes(s, "@all"):each() do
    for _, output in ipairs(node.outputs) do
      if HALF[output.dtype] then half = half + 1 elseif FLOAT[output.dtype] then full = full + 1 end
    end
  end
  if half == 0 then return talk:fine("no 16-bit floats in the graph: mixed precision is not in use") end
  talk:note(fmt("%d outputs are 16-bit floats, %d wider", half, full))
  local full_scale, vanished = {}, {}
  for _, step in ipairs(talk.steps) do
    for _, t in ipairs(s:tensors { steps = step }) do
      if HALF[t.dtype] and not t.problem and t.size > 0 then
        local stats = t.stats
        if (stats.dtype_max_count or 0) > 0 then full_scale[#full_scale + 1] = t.name end
        if t.name:find "^Gradients/" and stats.zero_percentage == 100 and t.size > 1 then vanished[#vanished + 1] = t.name end
      end
    end
  end
  if #full_scale > 0 then
    talk:finding("values stand at the largest number of their type: " .. some(full_scale),
      "keep these operators in float32, or lower the loss scale")
  end
  if #vanished > 0 then
    talk:finding("16-bit gradients are all zero: " .. some(vanished), "raise the loss scale, or use a dynamic one")
  end
  if #full_scale + #vanished == 0 then talk:fine("no 16-bit tensor is saturated, no 16-bit gradient has vanished") end
  talk:ask {
    key = "loss scale",
    question = "Is a loss scale set, and are the gradients divided by it again before the update?",
    open = "whether a loss scale is set, and undone before the update",
    yes = "the loss scale is set and undone",
    no = "use a dynamic loss scale (DynamicLossScaleManager) while 16-bit gradients are in use",
  }
end

M.order = {
  { "data", "Data", M.data },
  { "processing", "Processing of the data", M.processing },
  { "hyper_parameters", "Hyper-parameters and loss", M.hyper_parameters },
  { "api", "Use of the API", M.api },
  { "graph", "Graph", M.graph },
  { "weights", "Initial weights", M.weights },
  { "precision", "Mixed precision", M.precision },
}

return M
