-- Chapters of the guide about the network: graph, initial weights, precision. See guide_chapters.lua.
local tools = require "msdbg.guide_tools"

local fmt, ipairs, next = string.format, ipairs, next
local nodes, value, bad_count, short, count, worst, some =
  tools.nodes, tools.value, tools.bad_count, tools.short, tools.count, tools.worst, tools.some

local HALF = { float16 = true, bfloat16 = true }
local FLOAT = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

local M = {}

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
    talk:finding(fmt("first NaN or Inf: %s:%s in step %d, %d of its values%s", short(s, first.node), first.slot, first.step,
      first.bad_count, where),
      "look at its inputs: a logarithm or division of zero, or an overflow of the product", fmt("show %s", short(s, first.node)),
        first.step)
  elseif #result.not_checked > 0 then
    talk:unknown(fmt("no NaN or Inf where it could be looked for; %d tensors could not be judged", #result.not_checked),
      "msdbg doctor says why")
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

return M
