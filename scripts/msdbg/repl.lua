-- The prompt: plain commands, Lua expressions and statements. Completion is in repl_complete.lua.
local core = require "msdbg.core"
local commands = require "msdbg.repl_commands"
local complete = require "msdbg.repl_complete"
local help = require "msdbg.repl_help"
local pretty = require "msdbg.pretty"
local redirect = require "msdbg.repl_redirect"
local reference = require "msdbg.reference"
local rows = require "msdbg.repl_rows"
local stops = require "msdbg.repl_stops"
local strict = require "msdbg.strict"

local globals = strict.globals
local format, concat = string.format, table.concat
local ipairs, load, pairs, pcall, rawget, rawset = ipairs, load, pairs, pcall, rawget, rawset
local select, tostring, type = select, tostring, type

local M = {}

local MOST_KEPT = 9       -- values in _1 .. _9
local MOST_ENTRIES = 10000
local DEEPEST = 20        -- nesting of commands that evaluate an expression

local env = strict.prompt_environment()
M.environment = env

local state = commands.state
state.env, state.globals = env, globals

local function lookup(name)
  local value = rawget(env, name)
  if value == nil then value = rawget(globals, name) end
  return value
end
state.lookup = lookup

--- The session that commands work on, or nil.
local function session()
  local s = lookup "s"
  if core.class_of(s) == "session" then return s end
end
state.session = session

--- The tensor in a variable of this name, or nil.
function state.held(name)
  local value = name:match "^[%a_][%w_]*$" and lookup(name)
  if value and core.class_of(value) == "tensor" then return value end
end

-- ---- evaluation -----------------------------------------------------------------------------------------------------

local keywords = {}
-- Without `goto` and `until`: no entry can start with those.
for word in ("and break do else elseif end false for function if in local nil not or repeat return then true while"):gmatch "%a+" do
  keywords[word] = true
end

-- The command that `word` names, in full or by an unambiguous prefix; variables and Lua's own words take precedence.
local function command_named(word)
  local command = commands.find(word)
  if keywords[word] then return end
  if command then return command end
  if lookup(word) ~= nil then return end
  local beginning = commands.beginning_with(word)
  if #beginning == 1 then return beginning[1] end
  if #beginning > 1 and #word > 1 then
    local names = {}
    for i, each in ipairs(beginning) do names[i] = each.name end
    core.raise("undefined", format("'%s' is the beginning of several commands: %s", word, concat(names, ", ")), true)
  end
end

-- A line that starts with a command is one, unless the text after the word makes it Lua: `check = 3`, `nodes(x)`, `watch.x`.
local function split_command(text)
  local word, rest = text:match "^([%a_][%w_]*)(.*)$"
  if not word then return end
  if rest:match "^[%.:%[%({,]" or rest:match "^=[^=]" or rest:match "^%s+=%s" or rest:match "^%s*[=~<>]=" then return end
  local command = command_named(word)
  if not command then return end
  if rest:match "^%s*$" then
    -- `s` alone is the session, which the prompt shows anyway, or `step`, as in other debuggers.
    local s = word == "s" and session()
    if s and s.state ~= "closed" and s.can.step then return command, rest end
    if rawget(env, word) ~= nil or s then return end  -- a variable with that name
  elseif rawget(env, word) ~= nil and load("return " .. text) then
    return  -- `i + 1`, where i is a variable
  end
  return command, rest
end

function state.split_command(text)
  local ok, command, rest = pcall(split_command, text)
  if ok then return command, rest end
end

-- A value as shown by the prompt; a text is shown unchanged.
local function value_text(value)
  local text = pretty.text(value)
  return type(value) == "string" and text or core.wrapped(text)
end

-- The latest values, newest first: those of one entry in order, then those of the previous entry.
local function push_results(...)
  local count = select("#", ...)
  for i = MOST_KEPT, 1, -1 do
    local value
    if i > count then value = rawget(env, "_" .. i - count) else value = (select(i, ...)) end
    rawset(env, "_" .. i, value)
  end
  rawset(env, "_", (...))
end

--- The text of a list that a command prints. From now on `#3` and `_[3]` mean its row 3.
---@param list table|userdata
---@param text string?
---@return string
function state.listed(list, text)
  rows.keep(list)
  push_results(list)
  return text or tostring(list)
end

local function keep_results(...)
  local count = select("#", ...)
  if count == 0 then return "" end
  push_results(...)
  local class = core.class_of((...))
  if class == "node set" then rows.keep((...)) elseif class == "check result" then rows.keep((...).hits) end
  local parts = {}
  for i = 1, count do parts[i] = value_text((select(i, ...))) end
  return concat(parts, "  ")
end

local function show_only(...)
  local parts = {}
  for i = 1, select("#", ...) do parts[i] = value_text((select(i, ...))) end
  return concat(parts, "  ")
end

local CONSTANTS = { ["nil"] = true, ["true"] = true, ["false"] = true }

local function unknown_word(word)
  local names = commands.names()
  for _, space in ipairs { env, globals } do
    for name in pairs(space) do names[#names + 1] = name end
  end
  local close = core.nearest(word, names, 1)
  local hint = close[1] and format(" (did you mean '%s'?)", close[1]) or "; type help"
  core.raise("undefined", format("unknown command or name '%s'%s", word, hint), true)
end

local function run_command(command, rest)
  if command.shared then
    rows.take()
    local text = command.run(session, rows.resolve(command, rest, session()))
    local list = rows.take()
    return list and state.listed(list, text) or text
  end
  local options
  rest, options = commands.options(command, rows.resolve(command, rest, session()))
  -- Superfluous arguments are errors, not ignored.
  if command.usage == command.name and rest:match "%S" then
    commands.usage(command, format("%s takes no arguments, not '%s'", command.name, rest:match "^%s*(.-)%s*$"))
  end
  return command.run(session, command.raw and rest:match "^%s*(.-)%s*$" or commands.unquote(rest), options)
end

-- A value inside one of our messages.
local function shown(value) return type(value) == "string" and core.printable(value) or pretty.text(value) end

-- `?x` shows the type and the members of a value. `?s.watch` and `?t:slice` describe the member without calling it. The text before
-- the member is evaluated once: it may be a call that runs a step of a training.
local function explain_value(text)
  if text == "" then return help.overview() end
  local owner, sign, name = text:match "^(.+)([%.:])([%a_][%w_]*)$"
  -- Only a field can be assigned to; in `?x + y.z` nothing has the member z.
  if owner and load(owner .. "." .. name .. " = nil") then
    local value = load("return " .. owner, "=prompt", "t", env)()
    local class = core.class_of(value)
    local stub = class and reference.class(reference.stub_name(class))
    local found = stub and stub.members[name]
    if found then
      return reference.member_text(found) .. (found.params and "" or "\n  now: " .. shown(value[name]))
    end
    if sign == "." then
      local field = load("return (...)." .. name, "=prompt")(value)
      return help.value(field, text, shown(field))
    end
  end
  local word = text:match "^[%a_][%w_]*$"
  if word and lookup(word) == nil and not word:match "^_%d?$" then return help.about(word) end
  local rule = text:match "^%a[%w_]*%-[%w_%-]+$" and commands.rule_text(text)
  if rule then return rule end
  local whole, why = load("return " .. text, "=prompt", "t", env)
  if not whole then core.raise("syntax", (why:gsub("^prompt:%d+: ", "")), true) end
  local result = whole()
  return help.value(result, text, shown(result))
end

-- For `local x = 1` by itself: the name disappears with the entry.
local told_of_locals = false
local function about_locals(text)
  if told_of_locals then return "" end
  local body = text:match "^local%s+function%s+[%a_][%w_]*(.+)$"
  local values = text:match "^local%s+[%a_][%w_,%s]*=(.+)$"
  if not (body and load("return function" .. body) or values and load("return " .. values) or text:match "^local%s+[%a_][%w_]*$") then
    return ""
  end
  told_of_locals = true
  return "locals live for one entry; leave out 'local'"
end

-- Runs one entry. keep: called with the values of an expression.
local function run_entry(text, keep)
  local body, target = redirect.split(text, (state.split_command(text)))
  if target then return redirect.run(target, function() return run_entry(body, keep) end) end
  if text:match "^=[^=]" then  -- always an expression, whatever commands exist
    local chunk, why = load("return " .. text:sub(2), "=prompt", "t", env)
    if chunk then return "done", keep(chunk()), 0 end
    if why:match "'<eof>'$" then return "incomplete", "", 0 end
    core.raise("syntax", (why:gsub("^prompt:%d+: ", "")), true)
  end
  local number = text:match "^#(%d+)$"  -- as Lua it would be the length of a number
  if number then return run_entry(rows.command(tonumber(number)), keep) end
  if text:match "^%?" then return "done", core.wrapped(explain_value(text:match "^%?%s*(.-)%s*$")), 0 end
  local command, rest = split_command(text)
  if command then
    if command.open and command.open(rest) then return "incomplete", "", 0 end
    local output, leave = run_command(command, rest)
    if leave then return "exit", "", leave end
    return "done", output and core.wrapped(output) or "", 0
  end
  if text:match "^[%a_][%w_]*$" and lookup(text) == nil and not text:match "^_%d?$" and not CONSTANTS[text] and not load(text) then
    unknown_word(text)
  end
  local chunk, expression_why = load("return " .. text, "=prompt", "t", env)
  -- Looking at a kept value does not push it again.
  if chunk then return "done", (text:match "^_%d?$" and show_only or keep)(chunk()), 0 end
  local statements, why = load(text, "=prompt", "t", env)
  if statements then
    local output = keep(statements())
    return "done", output ~= "" and output or about_locals(text), 0
  end
  -- `1 +` is not a statement, but the start of an expression.
  if why:match "'<eof>'$" or expression_why:match "'<eof>'$" then return "incomplete", "", 0 end
  local word = text:match "^([%a_][%w_]*)%s+[^=%s(]"
  if word and lookup(word) == nil and not text:find "[\n=({]" then unknown_word(word) end
  core.raise("syntax", (why:gsub("^prompt:(%d+): ", text:find "\n" and "line %1: " or "")), true)
end

local depth = 0  -- `p p p 1`

--- The output of a command or an expression. `keep`: its values become _ and _1; otherwise nothing is kept.
function state.evaluate(text, keep)
  depth = depth + 1
  if depth > DEEPEST then core.raise("fail", format("more than %d commands inside each other", DEEPEST), true) end
  local outcome, output = run_entry(text:match "^%s*(.-)%s*$", keep and keep_results or show_only)
  depth = depth - 1
  if outcome == "incomplete" then core.raise("syntax", format("'%s' is not finished", text), true) end
  return output
end

-- The position of the session: step, rank and progress. Displays are shown when it changes.
local function position()
  local s = session()
  if not s or s.state == "closed" then return end
  local live = s.can.step
  return format("%s %s %s %s", s.current_step or "", s.current_rank or "", live and s.completed_steps or "", live and s.current_node or "")
end

local function with_displays(outcome, output, status, before)
  if outcome ~= "done" or #state.displays == 0 then return outcome, output, status end
  local now = position()
  if not now or now == before then return outcome, output, status end
  local text = state.display_text()
  return outcome, output == "" and text or output .. "\n" .. text, status
end

local function enter(text)
  local before = position()
  local outcome, output, status = run_entry(text, keep_results)
  return with_displays(outcome, output, status, before)
end

--- Runs one entry, typed or from a file.
function state.enter(text)
  text = text:match "^%s*(.-)%s*$"
  if text == "" then return "done", "", 0 end
  local s = session()
  if s then core.due_commands(s) end  -- discards those of a failed entry
  local outcome, output, status = enter(text)
  if outcome ~= "done" then return outcome, output, status end
  return stops.follow(session(), output, enter)
end

--- One entry of the prompt.
---@param text string
---@return "done"|"incomplete"|"exit" state
---@return string output
---@return integer status
function M.eval(text)
  depth = 0
  local outcome, output, status = state.enter(text)
  if outcome == "done" and text:match "%S" and #state.entries < MOST_ENTRIES then
    local entry = text:match "^%s*(.-)%s*$"
    -- Saving does not belong to the work that is saved.
    if not entry:match "^save%s" then state.entries[#state.entries + 1] = entry end
  end
  return outcome, output, status
end

--- The text before the cursor: `lenet step 1/3 rank 0 [2 watches] > `.
---@return string
function M.prompt()
  local s = session()
  local now_is = s and s.state  -- asked once, before the step that goes with it
  if not s or now_is == "closed" then return "msdbg > " end
  local step, steps, ranks, rank = s.current_step, s.steps, s.ranks, s.current_rank
  local text = s.info.short_name
  if s.can.step then
    if step then text = format("%s step %d", text, step) end
    -- Somewhere in the past: the training itself is ahead.
    local now = steps[#steps]
    if step and now and step ~= now and now_is ~= "waiting" then text = format("%s (of %d)", text, now) end
    text = format("%s %s%s", text, now_is, #ranks < 2 and "" or rank and format(" rank %d", rank) or format(" %d ranks", #ranks))
  else
    if step then text = format("%s step %d/%d", text, step, steps[#steps]) end
    rank = rank or #ranks == 1 and ranks[1]
    if rank then text = format("%s rank %d", text, rank) elseif #ranks > 1 then text = format("%s %d ranks", text, #ranks) end
  end
  local watches = #s:watches()
  if watches > 0 then text = format("%s [%d %s]", text, watches, watches == 1 and "watch" or "watches") end
  return text .. " > "
end

M.complete = complete.complete

return M
