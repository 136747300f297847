-- Chapters of the guide about the network: graph, initial weights, precision. See guide_chapters.lua.
local causes = require "msdbg.guide_causes"
local tools = require "msdbg.guide_tools"
local training = require "msdbg.training"

local fmt, ipairs, math, pairs, table = string.format, ipairs, math, pairs, table
local nodes, value, bad_count, short, count, some, steps_text =
  tools.nodes, tools.value, tools.bad_count, tools.short, tools.count, tools.some, tools.steps_text

local HALF = { float16 = true, bfloat16 = true }
local FLOAT = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

local M = {}

-- ---- graph ----------------------------------------------------------------------------------------------------------

local OF_KIND = { parameter = "bad_parameter", input = "bad_input" }

-- The chapter on precision reports overflows that the loss scale handled.
local function look_at_origin(checklist)
  local s, result = checklist.session, checklist.origin
  local first = result.origins[1]
  local cause = first and causes.of_node(checklist, first.node, first.step)
  if cause and causes.advice(cause) then
    if cause.node ~= first.node then
      checklist:note(fmt("first NaN or Inf: %s:%s in step %d; follows from %s", short(s, first.node), first.slot, first.step, cause.sentence))
    end
    causes.report(checklist)
  elseif first then
    local frame = first.stack and first.stack[1]
    local where = frame and fmt(" (%s:%d  %s)", frame.file, frame.line, (frame.code or ""):gsub("%s+#.*", "")) or ""
    local t = s:tensor(first.node .. ":" .. first.slot, { step = first.step, rank = first.rank, graph = first.graph_id })
    local bad = math.max(first.bad_count or 0, t and bad_count(t.stats) or 0)
    checklist:finding(fmt("first NaN or Inf: %s:%s in step %d%s%s", short(s, first.node), first.slot, first.step,
      bad > 0 and fmt(", %d of its values", bad) or "", where), causes.advice { kind = OF_KIND[first.kind] or "unknown" },
      fmt("show %s", short(s, first.node)), first.step)
  elseif #result.not_checked > 0 then
    checklist:unknown(fmt("no NaN or Inf in what could be checked; %d tensors could not", #result.not_checked),
      "the command doctor says why")
  elseif #checklist.skips > 0 then
    checklist:fine("NaN and Inf only in gradients that the loss scale made too large; they reached no weight")
  else
    checklist:fine("no NaN or Inf in any dumped tensor")
  end
end

function M.graph(checklist)
  look_at_origin(checklist)
  checklist:rules { "dead-relu", "vanishing-by-depth", "vanishing-gradient", "zero-gradient", "exploding-gradient" }
  if not checklist.result_of["dead-relu"] then
    local looked = 0
    for node in nodes(checklist.session, training.relu):each() do
      for _, step in ipairs(checklist.steps) do
        local t = node:output(0, { step = step })
        if t and not t.problem and t.step == step and t.stats.zero_percentage then looked = looked + 1 end
      end
    end
    if looked > 0 then checklist:fine(fmt("%s of ReLU checked, none is all zero", count(looked, "output"))) end
  end
  checklist:other_rules()
end

-- ---- initial weights ------------------------------------------------------------------------------------------------

-- What is odd about a weight. One that is constant may be meant to begin so, but not to stay so.
local function oddity(node, initial, after)
  local t = initial or after
  local stats = t.stats
  if bad_count(stats) > 0 then return fmt("%s holds NaN or Inf", node.name) end
  if (stats.abs_mean or 0) > 10 then return fmt("%s has mean |x| %.4g", node.name, stats.abs_mean) end
  local last = (after or initial).stats
  if last.min and last.min == last.max and #t.shape > 1 then return fmt("%s is %.6g everywhere", node.name, last.min) end
end

-- Dumped parameters are those after the update of their step: the first ones have been updated once. What the network took in
-- the first step is better, if it was dumped.
function M.weights(checklist)
  local step = checklist.steps[1]
  local first = checklist.origin.origins[1]
  local broken = first and first.kind == "operator" and first.step <= step
  local taken = training.before_updates(checklist.session)
  local odd, looked, initial = {}, 0, 0
  for _, list in ipairs { checklist.trained, checklist.frozen } do
    for _, node in ipairs(list) do
      local t
      for _, at in ipairs(checklist.steps) do t = t or value(node, at) end
      local before = t and t.step == step and taken(t)
      if t and t.size > 1 and (before or not broken) then
        looked = looked + 1
        initial = initial + (before and 1 or 0)
        odd[#odd + 1] = oddity(node, before, not broken and t or nil)
      end
    end
  end
  local when = initial == looked and "before" or "after"
  if looked == 0 and broken then
    return checklist:unknown(fmt("the first dumped weights are those after step %d, which the fault of the graph had reached", step),
      "look at the checkpoint that the training began with: ckpt show FILE")
  elseif looked == 0 then
    return checklist:unknown(fmt("no weight of step %d was dumped", step), "dump the parameters, or see ckpt show on a checkpoint")
  end
  if #odd > 0 then
    checklist:finding(fmt("weights %s step %d look wrong: %s", when, step, some(odd)),
      "look at the initialiser, or whether the checkpoint was loaded", "watch @weight WI", when == "before" and step - 0.5 or nil)
  else
    checklist:fine(fmt("%s %s step %d: finite, not constant, moderate", count(looked, "weight"), when, step))
  end
end

-- ---- mixed precision ------------------------------------------------------------------------------------------------

function M.precision(checklist)
  local s, half, full = checklist.session, 0, 0
  for node in nodes(s, "@all"):each() do
    for _, output in ipairs(node.outputs) do
      if HALF[output.dtype] then half = half + 1 elseif FLOAT[output.dtype] then full = full + 1 end
    end
  end
  if half == 0 then return checklist:fine("no 16-bit floats in the graph: mixed precision is not in use") end
  checklist:note(fmt("%d outputs are 16-bit floats, %d wider", half, full))
  local scales = checklist.scales
  for _, scale in ipairs(scales) do
    checklist:note(fmt(scale.first == scale.last and "%s = %.6g" or "%s = %.6g at first, %.6g at the end", scale.node.name, scale.first,
      scale.last))
  end
  local skipped, first = {}, checklist.skips[1]
  for _, skip in ipairs(checklist.skips) do
    if skip.rank == first.rank then skipped[#skipped + 1] = skip.step end
  end
  if first and first.from > first.to then
    checklist:note(fmt("gradients overflowed in %s: the update was left out and the loss scale lowered, in step %d from %.6g to %.6g",
      steps_text(skipped), first.step, first.from, first.to))
  elseif first then
    checklist:note(fmt("gradients overflowed in %s: the update was left out", steps_text(skipped)))
  end
  local found = checklist:rules { "loss-scale-stuck", "dtype-saturation", "float16-subnormal" }
  local vanished = {}
  local gradients = nodes(s, "@gradient")
  for _, step in ipairs(#gradients > 0 and checklist.steps or {}) do
    for _, t in ipairs(s:tensors { on = gradients, steps = step }) do
      if HALF[t.dtype] and not t.problem and t.size > 1 and t.stats.zero_percentage == 100 then
        vanished[t.name] = (vanished[t.name] or 0) + 1
      end
    end
  end
  local gone = {}
  for name, times in pairs(vanished) do
    if times == #checklist.steps then gone[#gone + 1] = name end
  end
  table.sort(gone)
  if #gone > 0 then
    checklist:finding("16-bit gradients are all zero in every step: " .. some(gone), "raise the loss scale, or use a dynamic one")
  elseif not found then
    checklist:fine("no 16-bit tensor is saturated or below its range, no 16-bit gradient has vanished")
  end
  if #scales > 0 then return end
  checklist:ask {
    key = "loss scale",
    question = "Is a loss scale set, and are the gradients divided by it again before the update?",
    open = "whether a loss scale is set, and removed before the update",
    yes = "the loss scale is set, and removed before the update",
    no = "use a dynamic loss scale (DynamicLossScaleManager) while 16-bit gradients are in use",
  }
end

return M
