-- What the guide says about causes: a finding that follows from another is a fact, the cause is what to repair. See docs/causes.md.
local tools = require "msdbg.guide_tools"

local concat, fmt, ipairs = table.concat, string.format, ipairs

local M = {}

-- Causes that are no finding of a rule, with the next step. The others are: their rule gives the advice.
local ADVICE = {
  log_of_zero = "add a small constant before the logarithm, or find out why its input became 0",
  log_of_negative = "find out why the input of the logarithm became negative",
  root_of_negative = "find out why the input of the root became negative",
  out_of_domain = "clamp the input to where the function is defined, or find out why it left",
  division_by_zero = "add a small constant to the divisor, or find out why it became 0",
  cast_overflow = "keep this value in the wider type, or scale it before the cast",
  exp_overflow = "subtract the largest element before the exponential, or lower the learning rate",
  product_overflow = "look at the size of both inputs over the steps: trend l2_norm NODE",
  sum_overflow = "look at the size of the inputs over the steps: trend l2_norm NODE",
  bad_input = "clean the data set, or the step that normalises it (a division by a zero deviation is common)",
  bad_parameter = "look at the checkpoint that the training began with: ckpt show FILE",
  rate_too_large = "lower the learning rate, or warm it up",
  unknown = "look at its inputs",
}

--- What to do about a cause, or nil where a rule has its own advice.
function M.advice(cause) return ADVICE[cause.kind] end

--- What these hits follow from, as a text; nil if one of them follows from nothing, or is the finding on its cause itself.
---@param causes table[]
---@param hits msdbg.Hit[]
function M.behind(causes, hits)
  local words, seen = {}, {}
  for _, hit in ipairs(hits) do
    local cause = hit.follows and causes[hit.follows]
    if not cause or cause.node == hit.node and cause.rank == hit.rank then return nil end
    if not seen[cause] then words[#words + 1] = cause.sentence end
    seen[cause] = true
  end
  return concat(words, " and from ")
end

--- The cause of what is wrong with a node in a step; nil if none is known.
function M.of_node(checklist, node, step)
  for _, hit in ipairs(checklist.hits) do
    if hit.node == node and hit.step == step and hit.follows then return checklist.causes[hit.follows] end
  end
end

-- Reported by the chapter whose subject they are.
local ELSEWHERE = { bad_input = true, rate_zero = true }

--- The causes that no rule and no other chapter reports, each as a finding. `only`: of these kinds.
---@param only? table<string, boolean>
function M.report(checklist, only)
  for _, cause in ipairs(checklist.causes) do
    local advice = M.advice(cause)
    if advice and not ELSEWHERE[cause.kind] and not checklist.told[cause] and (not only or only[cause.kind]) then
      checklist.told[cause] = true
      local code = cause.source and cause.source.code
      code = code and code ~= "" and fmt(" (%s)", (code:gsub("%s+#.*", ""))) or ""
      local evidence = cause.evidence and fmt("; %s", cause.evidence) or ""
      checklist:finding(cause.sentence .. code .. evidence, advice, fmt("show %s", tools.short(checklist.session, cause.node)), cause.step)
    end
  end
end

return M
