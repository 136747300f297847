-- Texts of `help`, `?x` and `apropos`. The topics are here; commands describe themselves, and the stubs describe the library.
local core = require "msdbg.core"
local expression_words = require "msdbg.expression_words"
local reference = require "msdbg.reference"
local registry = require "msdbg.repl_registry"

local concat, format, sort = table.concat, string.format, table.sort
local debug, ipairs, pairs, rawget, require, type = debug, ipairs, pairs, rawget, require, type

local M = {}

local MOST_IN_FULL = 3  -- more functions of one name are only listed

local topics = {}

topics.selectors = [[
A selector chooses nodes; what is looked at is their outputs (for parameters and constants: the value).
  relu                    substring of the full name, case ignored
  Default/**/Conv2D*      glob: * stops at /, ** does not
  =NAME   /regex/         exactly this node; a regular expression
  @weight @gradient @activation @parameter @constant @optimizer @loss @from_weights @scaled
  @all                    every node
  op:MatMul  scope:PATH  stack:train.py:42  rank:1  graph:NAME
  A and B, A or B, not A, ( )]]

topics.conditions = [[
  watch ** TO                          NaN or Inf anywhere
  watch @weight WCL 0.1                weights that change by more than 10 percent in a step
  watch @activation TZ 50              at least half of the elements are zero
  watch @gradient TL max_gt=3          a parameter by name
A condition is named by its id (tensor_overflow) or abbreviation (TO). In Lua a function of a tensor also works:
  s:watch { on = "op:ReLU", when = function(t) return t.stats.zero_percentage > 99 end }
All of them:]]

topics.expressions = [[
  watch @gradient percent(abs(x) > 3*std(x)) > 5
  watch ** norm2(x) > 10 * norm2(prev)
x is the element, prev the same tensor in the previous step. + - * / ^, comparisons, and or not; abs sqrt exp log log2 sign floor
min max isnan isinf isfinite; over elements: any all count percent sum mean min max std norm1 norm2 norminf; size step rank
dtype_max dtype_min_normal dtype_eps. In Lua: t:eval "mean(abs(x))"  t:where "x > 1e4". explain EXPRESSION shows the cost.]]

topics.tensors = [[
A tensor is NODE:output:0; NODE:0 is short for output 0, a unique ending of the name is enough.
  show Log-op0   pt fc1.weight[0:2,:]   worst Log-op0   hist fc1.weight   heatmap fc1.weight   trend abs_mean fc1.weight
  t = s:tensor("conv1-Conv2d/Conv2D-op0:0", { step = 1 })
  t.stats.max   t:worst(5)   t:where "x > 1e4"   t:histogram { bins = 10 }   t:quantile(0.99)
  t:slice "0:2,:"   t:at(0, 3)   t:previous()   t:change_ratio(t:previous())   t:save "conv.npy"   t:show()]]

topics.lua = [[
Anything that is not a command is Lua. s is the open session, msdbg the library; _ is the last result, _1 to _9 the latest nine
values, newest first.
  for step in s:each_step() do print(step, s:tensor("Log-op0").stats.neg_inf_count) end
  for w in s:nodes "@weight":each() do print(w.name, w:value().stats.abs_mean) end
  r = s:check { steps = "0:10" }   #r.hits   r.hits[1].node   r.coverage.checked
An open block or bracket asks for more lines; Ctrl-C drops them. help session, help tensor, ?x: what an object has.]]

topics.live = [[
  msdbg listen                      then start the training with the variables that it prints
  step 10   next   run_to NODE   finish   continue   (s, n, r, c)    Ctrl-C: the training is held, the prompt comes back
  watch @gradient TO   continue     stops at the first hit; recheck after edits judges the current values again
  tbreak, ignore N COUNT, commands N    for one hit; not for the next COUNT hits; what to enter at a hit
  goto -1                           statistics of the step before this one: loss, learning rate, weights; goto now
  detach   attach   terminate       let the training continue, hold it again, or end it; leaving the prompt asks
In Lua: r = s:continue { timeout = 60 }  r.reason  r.step  r.hits   for step, r in s:each_step() do ... end
  s:on("hit", function(hit, r) print(hit.node) end)   also "step" and "end". Reference: docs/live.md]]

topics.scripts = [[
  msdbg listen --script SCRIPT.lua  the same on a training: s is the held session
  msdbg run SCRIPT.lua DUMP         arguments arrive as ... and arg; os.exit(n) is the exit status; -e CODE instead of a file
Scripts begin with: local msdbg = require "msdbg"; local s = msdbg.open(arg[1])
A script has its own environment: it reads the globals, but cannot make any. msdbg.fail "text" ends it with a message.]]

topics.redirect = [[
  check > hits.txt            writes the output of an entry to a file, replacing it
  stats ** >> all.txt         appends it to a file
  stats ** | grep conv        sends it to a shell command; an exit status other than 0 is reported
The output is not shortened and has no colour. Comparisons still work: after Lua, and after a command that takes an expression (watch,
where, bisect, origin), > redirects only to a path with a slash: where Log-op0 x > 3 > ./big.txt. A line that begins with = is Lua.]]

topics.rows = [[
  nodes fc2   show #5   show #5:input:0   watch #5 TO       #5 is row 5 of the last list
  tensors relu --steps all   hist #3                        a tensor or a hit brings its step along
  check   bt #1   watches   unwatch #2
The lists of nodes, tensors, stats, check, hits, watches and bt have numbered rows. In Lua the list is _ and its row 5 is _[5].]]

topics.keys = [[
  Tab       completes: commands and their options, selectors, node names level by level, conditions, fields, files
  Ctrl-R    searches the history, which is kept for you in $XDG_STATE_HOME/msdbg/history
  Ctrl-C    drops the line, or stops the command and keeps the prompt
  Ctrl-D    leaves;  Ctrl-A Ctrl-E Ctrl-W Ctrl-U Ctrl-Y and the arrows edit as in a shell; ~/.editrc changes keys
$XDG_CONFIG_HOME/msdbg/init.lua (~/.config/msdbg/init.lua) is entered first, unless --no-init; then -x FILE and -e CODE.]]

topics.short = [[
  gdb     s step   n next   c continue   r run   b watch   info b, i   d unwatch   p EXPR   bt   display   q quit   h help
  tfdbg   lt list tensors   pt print tensor   ni node info   li inputs   lo outputs   r run
Any unambiguous prefix works: `unw 1`. A variable of that name wins, and `n = 5` is always Lua.]]

---@return string[]
function M.topics()
  local names = {}
  for name in pairs(topics) do names[#names + 1] = name end
  sort(names)
  return names
end

local function condition_lines()
  local rows = {}
  for _, condition in ipairs(core.conditions()) do
    rows[#rows + 1] = { "  " .. condition.abbr, condition.id, condition.summary }
  end
  return registry.align(rows)
end

---@param name string
---@return string?
function M.topic(name)
  if name == "conditions" then return topics.conditions .. "\n" .. condition_lines() end
  return topics[name]
end

function M.command(definition)
  local lines = { definition.usage, "  " .. definition.summary }
  if definition.also then lines[2] = lines[2] .. format(" (short: %s)", concat(definition.also, ", ")) end
  if definition.details then lines[#lines + 1] = "  " .. definition.details:gsub("\n%s*", "\n  ") end
  local rows, common = {}, {}
  for _, word in ipairs(definition.words or {}) do rows[#rows + 1] = { "  " .. word[1], word[2] } end
  for _, verb in ipairs(definition.verbs or {}) do
    rows[#rows + 1] = { "  " .. verb.usage, verb.summary }
    for _, word in ipairs(verb.words) do rows[#rows + 1] = { "    " .. word[1], word[2] } end
    for _, option in ipairs(verb.options) do
      rows[#rows + 1] = { "    " .. concat(option.names, ", ") .. " " .. option.value, option.help }
    end
  end
  for _, option in ipairs(definition.options or {}) do
    local names = option.names and concat(option.names, ", ") or "--" .. option[1]
    if option.common then common[#common + 1] = names
    else rows[#rows + 1] = { "  " .. names .. (option[2] ~= "" and " " .. option[2] or ""), option[3] } end
  end
  if #rows > 0 then lines[#lines + 1] = registry.align(rows) end
  if #common > 0 then lines[#lines + 1] = "  as every command: " .. concat(common, ", ") end
  for i, example in ipairs(definition.examples or {}) do lines[#lines + 1] = (i == 1 and "  e.g. " or "       ") .. example end
  return concat(lines, "\n")
end

function M.overview()
  local rows, headings = {}, {}
  for _, definition in ipairs(registry.list()) do
    if definition.group ~= headings[#headings] then
      headings[#headings + 1] = definition.group
      rows[#rows + 1] = { definition.group .. ":" }
    end
    local usage = definition.usage
    if #usage > 34 then usage = usage:sub(1, 34):match "^(.*) [%[%u|]" .. " ..." end
    rows[#rows + 1] = { "  " .. usage, definition.summary .. (definition.also and " (" .. concat(definition.also, ", ") .. ")" or "") }
  end
  return registry.align(rows)
    .. "\nAnything else is Lua; s is the session, ?x describes a value. help COMMAND, apropos WORD; help TOPIC:\n  "
    .. concat(M.topics(), ", ")
end

-- `session.step`, `s:step`, `msdbg.open`: the member of a class with that path, or nil.
local function member(path)
  local owner, name = path:match "^([%w_%.]+)[%.:]([%w_]+)$"
  local class = owner and reference.class(owner == "s" and "session" or owner == "t" and "tensor" or owner)
  local found = class and class.members[name]
  if found then return reference.member_text(found) end
end

local function condition(word)
  for _, known in ipairs(core.conditions()) do
    if known.id == word:lower() or known.abbr:lower() == word:lower() and word ~= "" then
      return format("%s (%s)\n  %s\n  parameters: %s", known.id, known.abbr, known.summary,
        #known.params > 0 and concat(known.params, ", ") or "none")
    end
  end
end

-- The functions with that bare name in all classes.
local function members_named(name)
  local found = {}
  for _, class in ipairs(reference.load().classes) do
    local one = class.members[name]
    if one and one.params then found[#found + 1] = one end
  end
  return found
end

-- Other entries with that name, one per line: `help session.watch  session:watch(options) -> msdbg.Watch`.
local function others(class, members)
  local rows = {}
  if class then
    local name = class.name:gsub("^msdbg%.", "")
    rows[1] = { "  help " .. name, "the class: " .. (class.doc ~= "" and reference.brief(class.doc) or "its fields and functions") }
  end
  for _, each in ipairs(members) do
    local owner = each.class:lower():gsub("^msdbg%.", "")
    rows[#rows + 1] = { format("  help %s.%s", owner, each.name), reference.signature(each) }
  end
  return registry.align(rows)
end

--- The help text of a word; for an unknown word an error with the nearest words.
---@param word string
---@return string
function M.about(word)
  local parts = {}
  local definition = registry.find(word)
  if definition then parts[1] = M.command(definition) end
  local text = M.topic(word) or member(word) or condition(word) or registry.rule_text(word)
  if text then parts[#parts + 1] = text end
  local in_expressions = expression_words.about(word)
  if in_expressions then parts[#parts + 1] = in_expressions end
  local class, members = not M.topic(word) and reference.class(word) or nil, members_named(word)
  if class and not definition then
    parts[#parts + 1] = reference.class_text(class)
    class = nil
  elseif #parts == 0 and #members <= MOST_IN_FULL then
    for i, each in ipairs(members) do parts[i] = reference.member_text(each) end
    members = {}
  end
  if class or #members > 0 then
    parts[#parts + 1] = (#parts > 0 and "the same name in Lua:\n" or "several functions have that name:\n") .. others(class, members)
  end
  if #parts > 0 then return concat(parts, "\n") end
  local beginning = registry.beginning_with(word)
  if #beginning == 1 then return M.command(beginning[1]) end
  local names = M.topics()
  for _, name in ipairs(registry.names()) do names[#names + 1] = name end
  for _, each in ipairs(reference.load().classes) do
    for name in pairs(each.members) do names[#names + 1] = name end
  end
  local close = core.nearest(word, names, 1)[1]
  local hint = close and close ~= word and format(" (did you mean '%s'?)", close) or ""
  registry.mistake(format("no help on '%s'%s; apropos %s searches, topics: %s", word, hint, word, concat(M.topics(), ", ")))
end

--- Every entry whose text contains all the words.
---@param words string
---@return string
function M.apropos(words)
  local wanted = {}
  for word in words:lower():gmatch "%S+" do wanted[#wanted + 1] = word end
  local function matches(text)
    text = text:lower()
    for _, word in ipairs(wanted) do
      if not text:find(word, 1, true) then return false end
    end
    return true
  end
  local rows = {}
  local function add(kind, name, text) rows[#rows + 1] = { kind, name, text } end
  for _, definition in ipairs(registry.list()) do
    local examples = concat(definition.examples or {}, " ")
    if matches(concat({ definition.name, definition.usage, definition.summary, definition.details or "", examples }, " ")) then
      add("command", definition.name, definition.summary)
    end
  end
  for _, name in ipairs(M.topics()) do
    if matches(name .. " " .. topics[name]) then add("topic", name, "help " .. name) end
  end
  for _, known in ipairs(core.conditions()) do
    if matches(known.id .. " " .. known.abbr .. " " .. known.summary) then add("condition", known.id, known.summary) end
  end
  for _, entry in ipairs(expression_words.list()) do
    if matches(entry[1] .. " " .. entry[2]) then add("expression", entry[1], entry[2]) end
  end
  for _, made in ipairs(registry.rule_list()) do
    if not made.catalogue and matches(concat({ made.name, made.summary, concat(made.tags, " "), made.cause or "" }, " ")) then
      add("rule", made.name, made.summary)
    end
  end
  for _, found in ipairs(reference.search(matches)) do add("Lua", found.title, found.text) end
  if #rows == 0 then return format("nothing speaks of '%s'", words) end
  return registry.align(rows)
end

--- The output of `?x`: the class of a value with its members, or the description of a function.
---@param value any
---@param text string  the expression as typed
---@param shown string  the value as the prompt prints it
---@return string
function M.value(value, text, shown)
  local class = core.class_of(value)
  local found = class and reference.class(reference.stub_name(class))
  if found then return shown .. "\n" .. reference.class_text(found) end
  if value == require "msdbg" then return reference.class_text(reference.class "msdbg") end
  if type(value) == "function" then
    local known = member(text)
    if known then return known end
    -- The owner is an object of the library: s.watch, _:slice.
    for _, each in ipairs(reference.load().classes) do
      for name, one in pairs(each.members) do
        if one.params and text:match("[%.:]" .. name .. "$") then return reference.member_text(one) end
      end
    end
    local info = debug.getinfo(value, "S")
    return info.what == "C" and "a function written in C" or format("a function, %s:%d", info.short_src, info.linedefined)
  end
  if type(value) == "table" then
    local meta = debug.getmetatable(value)
    local name = type(meta) == "table" and rawget(meta, "__name")
    local stub = type(name) == "string" and reference.class(name)
    if stub then return shown .. "\n" .. reference.class_text(stub) end
  end
  return type(value) .. "  " .. shown
end

return M
