-- Texts of `help` at the prompt.
local concat, format, sort = table.concat, string.format, table.sort
local ipairs, pairs = ipairs, pairs

local M = {}

local topics = {}

topics.selectors = [[
A selector chooses nodes; what is looked at is their outputs (for parameters and constants: the value).
  relu                    substring of the full name, case ignored
  Default/**/Conv2D*      glob: * stops at /, ** does not
  =NAME   /regex/         exactly this node; a regular expression
  @weight @gradient @activation @parameter @constant @optimizer @loss @all
  op:MatMul  scope:PATH  stack:train.py:42  rank:1  graph:NAME
  A and B, A or B, not A, ( )]]

topics.conditions = [[
  watch ** TO                          NaN or Inf anywhere
  watch @weight WCL 0.1                weights that change by more than 10 percent in a step
  watch @activation TZ 50              at least half of the elements are zero
  watch @gradient TL max_gt=3          a parameter by name
A condition is named by its id (tensor_overflow) or abbreviation (TO). In Lua a function of a tensor is one, too:
  s:watch { on = "op:ReLU", when = function(t) return t.stats.zero_percentage > 99 end }]]

topics.tensors = [[
A tensor is NODE:output:0; NODE:0 is short for output 0, the end of the name is enough when it is unique.
  t = s:tensor("conv1-Conv2d/Conv2D-op0:0", { step = 1 })
  t.stats.max   t:worst(5)   t:where "x > 1e4"   t:histogram { bins = 10 }   t:quantile(0.99)
  t:slice "0:2,:"   t:at(0, 3)   t:previous()   t:change_ratio(t:previous())   t:save "conv.npy"   t:show()]]

topics.lua = [[
Everything that is no command is Lua. s is the open session, msdbg the library; _ is the last result, _1 to _9 its values.
  for step in s:each_step() do print(step, s:tensor("Log-op0").stats.neg_inf_count) end
  for w in s:nodes "@weight":each() do print(w.name, w:value().stats.abs_mean) end
  r = s:check { steps = "0:10" }   #r.hits   r.hits[1].node   r.coverage.checked
An open block or bracket asks for more lines; an empty line gives up. Reference: docs/lua.md]]

topics.live = [[
  msdbg listen                      then start the training with the variables that it prints
  step 10   next   run_to NODE   continue   (s, n, r, c)    Ctrl-C: the training is held, the prompt comes back
  watch @gradient TO   continue     stops at the first hit; recheck after edits judges the values at hand again
  goto -1                           statistics of the step before this one; goto now
  detach   terminate                let the training run on, or end it; quit asks
In Lua: r = s:continue { timeout = 60 }  r.reason  r.step  r.hits   for step, r in s:each_step() do ... end
  s:on("hit", function(hit, r) print(hit.node) end)   also "step" and "end". Reference: docs/live.md]]

topics.scripts = [[
  msdbg listen --script SCRIPT.lua  the same on a training: s is the held session
  msdbg run SCRIPT.lua DUMP        arguments arrive as ... and arg; os.exit(n) is the exit status
Scripts begin with: local msdbg = require "msdbg"; local s = msdbg.open(arg[1])
A script has its own environment: it reads the globals, but cannot make any. msdbg.fail "text" ends it with a message.]]

---@return string[]
function M.topics()
  local names = {}
  for name in pairs(topics) do names[#names + 1] = name end
  sort(names)
  return names
end

---@param name string
---@return string?
function M.topic(name) return topics[name] end

function M.command(definition) return format("%s\n  %s", definition.usage, definition.summary) end

function M.overview(list)
  local lines = {}
  for i, definition in ipairs(list) do
    local usage = definition.usage
    if #usage > 30 then usage = usage:match "^(.-) %[" .. " ..." end
    lines[i] = format("  %-30s %s", usage, definition.summary)
  end
  lines[#lines + 1] = "Anything else is Lua; s is the session. help TOPIC: " .. concat(M.topics(), ", ")
  return concat(lines, "\n")
end

return M
