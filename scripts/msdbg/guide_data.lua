-- The chapters of the guide about data and their processing. See guide_chapters.lua.
local tools = require "msdbg.guide_tools"
local training = require "msdbg.training"

local fmt, ipairs, pcall, table = string.format, ipairs, pcall, table
local nodes, value, bad_count, same_values, count, some, steps_text =
  tools.nodes, tools.value, tools.bad_count, tools.same_values, tools.count, tools.some, tools.steps_text

local FLOAT = { float16 = true, bfloat16 = true, float32 = true, float64 = true }

local M = {}

-- Fewer values may be equal by chance, like the labels of a batch of two.
local FEW = 16
-- Images of 0 to 255 have a mean around 100, normalised ones below 1.
local LARGE = 50

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

return M
