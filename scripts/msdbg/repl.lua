-- The prompt: plain commands, Lua expressions and statements in one line of input, and completion.
local core = require "msdbg.core"
local commands = require "msdbg.repl_commands"
local help = require "msdbg.repl_help"
local record = require "msdbg.record"
local strict = require "msdbg.strict"

local globals = strict.globals
local format, concat, sort = string.format, table.concat, table.sort
local ipairs, load, pairs, pcall, rawget, select, tostring, type = ipairs, load, pairs, pcall, rawget, select, tostring, type

local M = {}

local MOST_CANDIDATES = 200
local MOST_RESULTS = 9

local env = strict.prompt_environment()
M.environment = env

local function lookup(name)
  local value = rawget(env, name)
  if value == nil then value = rawget(globals, name) end
  return value
end

--- The session that commands work on, or nil.
local function session()
  local s = lookup "s"
  if core.class_of(s) == "session" then return s end
end

-- ---- evaluation ---------------------------------------------------------------------------------------------------

-- A line that begins with a command is one, unless what follows the word makes it Lua: `check = 3`, `nodes(x)`, `watch.x`.
local function split_command(text)
  local word, rest = text:match "^([%a_][%w_]*)(.*)$"
  local command = word and commands.find(word)
  if not command then return end
  if rest:match "^[%.:%[%({,]" or rest:match "^=[^=]" or rest:match "^%s+=%s" or rest:match "^%s*[=~<>]=" then return end
  if rest:match "^%s*$" then
    -- `s` alone is the session, which the prompt shows anyway, or the step that a debugger's user means by it.
    local s = word == "s" and session()
    if s and s.state ~= "closed" and s.can.step then return command, rest end
    if rawget(env, word) ~= nil or s then return end  -- a variable of that name
  end
  return command, rest
end

-- A selector or tensor name may stand in quotes, as it would in Lua.
local function unquote(text)
  text = text:match "^%s*(.-)%s*$"
  return text:match '^"([^"]*)"$' or text:match "^'([^']*)'$" or text
end

local function show(value)
  if core.class_of(value) == "tensor" then
    local ok, line = pcall(core.stats_line, value)
    return tostring(value) .. (ok and line and "  " .. line or "")
  end
  return record.pretty(value)
end

local function keep_results(...)
  local count = select("#", ...)
  if count == 0 then return "" end
  env._ = (...)
  local parts = {}
  for i = 1, count do
    local value = select(i, ...)
    if i <= MOST_RESULTS then env["_" .. i] = value end
    parts[i] = show(value)
  end
  return concat(parts, "  ")
end

local function unknown_word(word)
  local names = commands.names()
  for _, space in ipairs { env, globals } do
    for name in pairs(space) do names[#names + 1] = name end
  end
  local close = core.nearest(word, names, 1)
  local hint = close[1] and format(" (did you mean '%s'?)", close[1]) or "; type help"
  core.raise("undefined", format("unknown command or name '%s'%s", word, hint), true)
end

--- One entry of the prompt.
---@param text string
---@return "done"|"incomplete"|"exit" state
---@return string output
---@return integer status
function M.eval(text)
  text = text:match "^%s*(.-)%s*$"
  if text == "" then return "done", "", 0 end
  local command, rest = split_command(text)
  if command then
    local output, leave = command.run(session, unquote(rest))
    if leave then return "exit", "", leave end
    return "done", output or "", 0
  end
  if text:match "^[%a_][%w_]*$" and lookup(text) == nil and not text:match "^_%d?$" and not load(text) then unknown_word(text) end
  local chunk, expression_why = load("return " .. text, "=prompt", "t", env)
  if chunk then return "done", keep_results(chunk()), 0 end
  local statements, why = load(text, "=prompt", "t", env)
  if statements then return "done", keep_results(statements()), 0 end
  -- `1 +` is no statement at all, but the beginning of an expression.
  if why:match "'<eof>'$" or expression_why:match "'<eof>'$" then return "incomplete", "", 0 end
  local word = text:match "^([%a_][%w_]*)%s+[^=%s(]"
  if word and lookup(word) == nil and not text:find "[\n=({]" then unknown_word(word) end
  core.raise("syntax", (why:gsub("^prompt:(%d+): ", text:find "\n" and "line %1: " or "")), true)
end

--- The text before the cursor.
---@return string
function M.prompt()
  local s = session()
  if not s or s.state == "closed" then return "msdbg > " end
  local step = s.current_step
  local text = s.info.short_name .. (step and format(" step %d", step) or "")
  if s.can.step then
    -- Somewhere in the past: the training itself is further.
    local now = s.steps[#s.steps]
    if step and now and step ~= now and s.state ~= "waiting" then text = format("%s (of %d)", text, now) end
    text = text .. " " .. s.state
    local watches = #s:watches()
    if watches > 0 then text = format("%s [%d %s]", text, watches, watches == 1 and "watch" or "watches") end
  end
  return text .. " > "
end

-- ---- completion ---------------------------------------------------------------------------------------------------

local collections = { "@weight", "@gradient", "@activation", "@parameter", "@constant", "@optimizer", "@loss", "@all" }
local prefixes = { "op:", "scope:", "stack:", "rank:", "graph:" }

local function add_matching(found, word, names)
  for _, name in ipairs(names) do
    if type(name) == "string" and name:sub(1, #word) == word then found[#found + 1] = name end
  end
end

local function keys_of(value)
  local names = {}
  local class = core.class_of(value)
  if class then
    local methods, fields = core.members(class)
    for name in pairs(methods) do names[#names + 1] = name end
    for name in pairs(fields) do names[#names + 1] = name end
  elseif type(value) == "table" then
    for name in pairs(value) do names[#names + 1] = name end
  end
  sort(names, function(a, b) return tostring(a) < tostring(b) end)
  return names
end

local function complete_selector(word)
  local found = {}
  add_matching(found, word, collections)
  if word ~= "" then add_matching(found, word, prefixes) end
  local s = session()
  if s and s.state ~= "closed" and not word:match "^[@=/]" then
    local colon = word:match "^%a+:(.*)$"
    if not colon then
      for _, name in ipairs(core.node_names(s, word, MOST_CANDIDATES)) do found[#found + 1] = name end
    end
  end
  return found
end

local function complete_condition(word)
  local names, found = {}, {}
  for _, condition in ipairs(core.conditions()) do
    names[#names + 1] = condition.id
    if condition.abbr ~= "" then names[#names + 1] = condition.abbr end
  end
  add_matching(found, word, names)
  return found
end

local function complete_lua(word)
  local found = {}
  local path, separator, last = word:match "^([%a_][%w_%.]*)([%.:])([%w_]*)$"
  if path then
    local value
    for name in path:gmatch "[%w_]+" do
      if value == nil then value = lookup(name)
      elseif type(value) == "table" then value = rawget(value, name)
      else return found end
      if value == nil then return found end
    end
    add_matching(found, last, keys_of(value))
    for i, name in ipairs(found) do found[i] = path .. separator .. name end
    return found
  end
  local names = keys_of(globals)
  for _, name in ipairs(keys_of(env)) do names[#names + 1] = name end
  add_matching(found, word, names)
  return found
end

local completers = {
  selector = function(word) return complete_selector(word) end,
  topic = function(word)
    local found = {}
    add_matching(found, word, help.topics())
    add_matching(found, word, commands.names())
    return found
  end,
  step = function(word)
    local found, s = {}, session()
    if not s then return found end
    local names = {}
    for i, step in ipairs(s.steps) do names[i] = format("%d", step) end
    add_matching(found, word, names)
    return found
  end,
  watch = function(word, before)
    local found = complete_selector(word)
    if before:match "%S+%s+%S+%s" then
      for _, name in ipairs(complete_condition(word)) do found[#found + 1] = name end
    end
    return found
  end,
}

local function candidates(line, cursor)
  local before = line:sub(1, cursor)
  local word = before:match "[^ \t\"'`()%[%]{},=<>+*;]*$"
  local rest = before:sub(1, #before - #word)
  if rest:match "^%s*$" then
    local found = {}
    add_matching(found, word, commands.names())
    for _, name in ipairs(complete_lua(word)) do found[#found + 1] = name end
    return found
  end
  local command = split_command(rest:match "^%s*(.*)$")
  if command then
    local completer = completers[command.complete or ""]
    return completer and completer(word, before) or {}
  end
  local _, double = rest:gsub('"', "")
  local _, single = rest:gsub("'", "")
  if double % 2 == 1 or single % 2 == 1 then return complete_selector(word) end
  return complete_lua(word)
end

--- Candidates for the word that ends at `cursor` (bytes before it), best first, without repetition.
---@param line string
---@param cursor integer
---@return string[]
function M.complete(line, cursor)
  local seen, unique = {}, {}
  for _, name in ipairs(candidates(line, cursor)) do
    if not seen[name] and #unique < MOST_CANDIDATES then
      seen[name] = true
      unique[#unique + 1] = name
    end
  end
  return unique
end

return M
