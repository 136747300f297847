-- `msdbg rules list|info|test|new`.
local core = require "msdbg.core"
local cases = require "msdbg.rule_cases"
local formats = require "msdbg.format"
local json = require "msdbg.json"
local rule = require "msdbg.rule"
local rules = require "msdbg.rule_library"

local concat, format, pad, rep = table.concat, formats.line, formats.pad, string.rep
local error, io, ipairs, pcall, tonumber, tostring, type = error, io, ipairs, pcall, tonumber, tostring, type

local M = {}

local lines, notes  -- of the current answer
local function print(text) lines[#lines + 1] = text end

local function note(text) notes[#notes + 1] = text end

local function show_notes(registry)
  for _, text in ipairs(registry.notes) do note(text) end
end

local limit  -- maximum width of a line

local LIST = { { title = "name" }, { title = "short" }, { title = "severity", drop = 1 }, { title = "summary", fit = "text", least = 40 },
  { title = "tags", fit = "text", drop = 2, least = 12 }, { title = "from", fit = "name", drop = 3 } }
local PARAMETERS = { { title = "parameter" }, { title = "default" }, { title = "accepted", fit = "text" },
  { title = "", fit = "text", least = 30 } }

local function where(made) return made.file or "catalogue" end

function M.list(options)
  local list, registry = rules.list { rules = options.rules, files = #options.files > 0 and options.files or nil, trust = options.trust }
  show_notes(registry)
  if options.format ~= "table" then
    local out = {}
    for i, made in ipairs(list) do
      out[i] = {
        name = made.name, abbr = made.abbr or json.null, summary = made.summary, tags = json.array(made.tags), severity = made.severity,
        file = made.file or json.null, origin = made.origin,
      }
    end
    local problems = {}
    for i, problem in ipairs(registry.problems) do problems[i] = { rule = problem.rule, reason = problem.reason } end
    if options.format == "jsonl" then
      for _, entry in ipairs(out) do print(json.encode(entry)) end
    else
      print(json.encode({ rules = json.array(out), problems = json.array(problems) }))
    end
    return #registry.problems > 0 and 5 or 0
  end
  local rows = {}
  for i, made in ipairs(list) do
    rows[i] = { made.name, made.abbr or "", { made.severity, paint = made.severity }, made.summary, concat(made.tags, ","), where(made) }
  end
  if #rows > 0 then print(core.table_text(LIST, rows, limit, options.plain)) end
  for _, problem in ipairs(registry.problems) do note(format("rule error: %s", problem.reason)) end
  return #registry.problems > 0 and 5 or 0
end

local function range_of(spec)
  if spec.choices then return concat(spec.choices, ", ") end
  local unit = spec.unit and " " .. spec.unit or ""
  if spec.min and spec.max then return format("%s to %s%s", tostring(spec.min), tostring(spec.max), unit) end
  if spec.min then return format("%s %s%s", spec.min_open and "above" or "from", tostring(spec.min), unit) end
  if spec.max then return format("up to %s%s", tostring(spec.max), unit) end
  return spec.type .. unit
end

-- Wraps a text to lines of at most 90 characters after an indent.
local function folded(label, text)
  if not text then return end
  local line = pad(label, 10)
  for word in core.printable(text:gsub("%s+", " ")):gmatch "%S+" do
    if formats.width(line) + formats.width(word) + 1 > math.min(100, limit) and #line > 10 then
      print(line)
      line = rep(" ", 10)
    end
    line = line .. (#line > 10 and " " or "") .. word
  end
  print(line)
end

local function shown_default(spec)
  if spec.default ~= nil then return tostring(spec.default) end
  if spec.fallback ~= nil then return tostring(spec.fallback) end
  return "-"
end

local function phases(made)
  local list = {}
  for _, name in ipairs { "applies", "setup", "select", "check", "step_end", "finish" } do
    if type(made[name]) == "function" then list[#list + 1] = name end
  end
  return #list > 0 and concat(list, ", ") or nil
end

local function selector_text(made)
  local select = made.select
  if type(select) == "function" then return "chosen by a function" end
  if type(select) == "table" then return concat(select, ", ") end
  return select or "@all"
end

local function info_json(made)
  local params = {}
  for i, name in ipairs(rule.keys(made.params)) do
    local spec, default = made.params[name], made.params[name].default
    if default == nil then default = made.params[name].fallback end
    if default == nil then default = json.null end
    params[i] = { name = name, type = spec.type, default = default,
      min = spec.min or json.null, max = spec.max or json.null, choices = spec.choices and json.array(spec.choices) or json.null,
      unit = spec.unit or json.null, help = spec.help or json.null }
  end
  return {
    name = made.name, abbr = made.abbr or json.null, summary = made.summary, tags = json.array(made.tags), severity = made.severity,
    select = selector_text(made), slots = made.slots, when = made.when or made.catalogue or json.null, needs = json.array(made.needs or {}),
    operand_has = made.operand_has or json.null,
    requires = json.array(made.requires), after = json.array(made.after), params = json.array(params), cause = made.cause or json.null,
    next = made.next or json.null, file = made.file or json.null, cases = made.cases and #made.cases or 0,
  }
end

function M.info(options)
  local registry = rules.registry { files = options.files, trust = options.trust }
  local made = rules.get(options.names[1], registry)
  if options.format ~= "table" then
    print(json.encode(info_json(made)))
    return 0
  end
  print(format("%s%s  %s", made.name, made.abbr and " (" .. made.abbr .. ")" or "", made.summary))
  folded("severity", made.severity)
  folded("tags", #made.tags > 0 and concat(made.tags, ", ") or nil)
  folded("looks at", format("%s%s", selector_text(made), made.slots ~= "output" and ", slots " .. made.slots or ""))
  folded("hits when", made.when or made.catalogue or made.compares and "a value differs between ranks that must share it")
  folded("phases", phases(made))
  folded("needs", made.needs and #made.needs > 0 and concat(made.needs, ", ") or nil)
  folded("where", made.operand_has and format("%s of an operand is above 0", made.operand_has))
  folded("requires", #made.requires > 0 and concat(made.requires, ", ") or nil)
  folded("after", #made.after > 0 and concat(made.after, ", ") or nil)
  folded("cause", made.cause)
  folded("next", made.next)
  folded("file", where(made))
  folded("cases", made.cases and tostring(#made.cases) or "none")
  local names = rule.keys(made.params)
  if #names > 0 then
    print ""
    local rows = {}
    for _, name in ipairs(names) do
      local spec = made.params[name]
      rows[#rows + 1] = { name, shown_default(spec), range_of(spec), spec.help or "" }
    end
    print(core.table_text(PARAMETERS, rows, limit))
    print(format("set with --param %s.%s=VALUE", made.name, names[1]))
  end
  return 0
end

function M.test(options)
  local reports, registry = cases.run(options.names, { files = options.files, trust = options.trust, budget = options.budget })
  show_notes(registry)
  local failed, total = 0, 0
  for _, report in ipairs(reports) do
    total = total + report.cases
    if #report.failures > 0 then failed = failed + 1 end
  end
  if options.format ~= "table" then
    local out = {}
    for i, report in ipairs(reports) do
      local failures = {}
      for k, failure in ipairs(report.failures) do
        failures[k] = { case = failure.case, expected = failure.expected, actual = failure.actual }
      end
      out[i] = {
        name = report.name, file = report.file or json.null, cases = report.cases, ok = #failures == 0, failures = json.array(failures),
      }
    end
    if options.format == "jsonl" then
      for _, entry in ipairs(out) do print(json.encode(entry)) end
    else
      print(json.encode({ rules = json.array(out), failed = failed }))
    end
    return failed > 0 and 1 or 0
  end
  local width = 0
  for _, report in ipairs(reports) do width = math.max(width, formats.width(report.name)) end
  for _, report in ipairs(reports) do
    local ok = #report.failures == 0
    print(format("%s  %s  %d case%s", ok and "ok    " or "FAILED", pad(report.name, width), report.cases, report.cases == 1 and "" or "s"))
    for _, failure in ipairs(report.failures) do
      print(format("        %sexpected %s, got %s", failure.case ~= "" and failure.case .. ": " or "", failure.expected, failure.actual))
    end
  end
  print(format("%d rule%s, %d cases; %d failed", #reports, #reports == 1 and "" or "s", total, failed))
  return (failed > 0 or #reports == 0) and 1 or 0
end

local template = [[
--- What this rule looks for, in one sentence.
local rule = require "msdbg.rule"

return rule {
  name     = "@NAME@",
  summary  = "the largest magnitude is above a limit",  -- shown by `msdbg rules list`, less than 60 characters
  tags     = { "team" },                    -- words for --rules; "default" makes it run without being asked for
  severity = "warning",                     -- info, warning or error
  select   = "@activation",                 -- which nodes; a selector, a list of them, or function(s, p) -> selector or nodes
  -- slots = "all",                         -- output (default), input or all
  params   = {
    limit = { type = "number", default = 1e4, min = 0, help = "largest |x| that is accepted" },
  },

  -- An expression runs at full speed; $limit is the parameter.
  when     = "max(abs(x)) > $limit",

  -- Instead of `when`, a function that is asked once for each tensor, on finished statistics:
  --   needs = { "max", "min" },
  --   check = function(t, p, ctx)
  --     local largest = math.max(t.stats.max, -t.stats.min)
  --     if largest > p.limit then return { actual = largest, message = "too large" } end
  --   end,
  -- Further phases: setup(s, p, ctx), step_end(s, p, ctx), finish(s, p, ctx). ctx.state is yours, ctx.previous are the statistics of the
  -- value before with needs = { "previous" }.

  cause    = "What usually leads to it.",
  next     = "What to look at or to do first.",
  cases    = {                              -- run by `msdbg rules test`
    { name = "above", x = { 1, -2e4 }, expect = "hit" },
    { name = "at the limit", x = { 1, 1e4 }, expect = "clean" },
    { name = "limit given", x = { 1, 4 }, params = { limit = 3 }, expect = "hit" },
  },
}
]]

function M.new(options)
  local name = options.names[1]
  local registry = rules.default_registry()
  if not name:match "^%w[%w_-]*$" then
    core.raise("invalid_argument", format("rules new: '%s': a name is made of letters, digits, - and _", name), true)
  end
  local taken, there = pcall(rules.get, name, registry)
  if taken then
    core.raise("invalid_argument", format("rules new: a rule '%s' exists in %s; choose another name", name, where(there)), true)
  end
  local text = template:gsub("@NAME@", name)
  if not options.output then
    print((text:gsub("\n$", "")))
    return 0
  end
  local before = io.open(options.output, "r")
  if before then
    before:close()
    core.raise("invalid_argument", format("rules new: %s exists already and is left as it is", options.output), true)
  end
  local file, why = io.open(options.output, "w")
  if not file then
    local directory = options.output:match "^(.*)/[^/]*$"
    local exists = not directory or directory == "" or io.open(directory, "r")
    core.raise("invalid_argument", "rules new: " .. (exists and why or format("the directory %s does not exist; make it first: mkdir -p %s",
      directory, directory)), true)
  end
  local written, problem = file:write(text)
  local closed, close_problem = file:close()
  if not (written and closed) then
    core.raise("invalid_argument", format("rules new: cannot write %s: %s", options.output, problem or close_problem), true)
  end
  note(format("%s written; try it: msdbg rules test %s", options.output, options.output))
  return 0
end

local lists = { name = "names", file = "files" }

--- Words from the command: verb=list, name=..., file=..., rules=..., format=..., output=..., trust=1, budget=5, width=80, plain=1.
---@param ... string
---@return string text
---@return integer exit_status
---@return string[] notes
function M.main(_, ...)
  local options = { names = {}, files = {}, format = "table" }
  for _, word in ipairs { ... } do
    local key, value = word:match "^([%w_]+)=(.*)$"
    if lists[key] then
      local list = options[lists[key]]
      list[#list + 1] = value
    elseif key == "trust" then
      options.trust = true
    else
      options[key] = (key == "budget" or key == "width") and tonumber(value) or value
    end
  end
  lines, notes, limit = {}, {}, options.width or math.huge
  local before = rules.budget
  rules.budget = options.budget or before
  local ok, status = pcall(M[options.verb], options)
  rules.budget = before
  if not ok then error(status, 0) end
  lines[#lines + 1] = ""
  local text = concat(lines, "\n")
  return options.format == "table" and options.width and core.wrapped(text) or text, status, notes
end

return M
