-- The table of the prompt's commands, and helpers for their definitions: session, options, mistakes.
--
-- A command has a name, optional short forms (`also`), a usage line, a summary under 60 characters, and optional `details`,
-- `examples`, `options` = { { "name", "VALUE", "help" } }, `complete` = the kind of its words, `raw` = quotes belong to Lua, `open`
-- = function(rest) -> whether more lines must follow, and run(session, rest, options) -> text, exit status; `session` is a function
-- that returns the open session or nil.
local core = require "msdbg.core"
local formats = require "msdbg.format"

local concat, format = table.concat, formats.line
local ipairs, pairs, pcall, tonumber = ipairs, pairs, pcall, tonumber

local M = {}

local list, by_name = {}, {}

--- State that commands share while the prompt runs: `env`, `displays`, `entries`, and from the evaluator `evaluate`, `enter`.
M.state = { displays = {}, entries = {}, next_display = 1 }

local heading

--- The group of the following commands; `help` lists them below its title.
---@param title string
function M.group(title) heading = title end

function M.command(definition)
  definition.group = heading
  list[#list + 1] = definition
  by_name[definition.name] = definition
  for _, other in ipairs(definition.also or {}) do by_name[other] = definition end
end

--- All commands, sorted by group.
---@return table[]
function M.list()
  local groups, of, ordered = {}, {}, {}
  for _, definition in ipairs(list) do
    if not of[definition.group] then
      of[definition.group] = {}
      groups[#groups + 1] = definition.group
    end
    local group = of[definition.group]
    group[#group + 1] = definition
  end
  for _, group in ipairs(groups) do
    for _, definition in ipairs(of[group]) do ordered[#ordered + 1] = definition end
  end
  return ordered
end

--- The command with exactly this name or short form.
---@param word string
function M.find(word) return by_name[word] end

--- The commands that start with `word`, each once.
---@param word string
---@return table[]
function M.beginning_with(word)
  local found, seen = {}, {}
  for name, definition in pairs(by_name) do
    if name:sub(1, #word) == word and not seen[definition] and name == definition.name then
      seen[definition] = true
      found[#found + 1] = definition
    end
  end
  table.sort(found, function(a, b) return a.name < b.name end)
  return found
end

---@return string[]
function M.names()
  local names = {}
  for _, definition in ipairs(list) do
    names[#names + 1] = definition.name
    for _, other in ipairs(definition.also or {}) do names[#names + 1] = other end
  end
  return names
end

function M.mistake(text) core.raise("fail", text, true) end

function M.usage(definition, why) M.mistake(format("%s; usage: %s", why, definition.usage)) end

function M.need(session)
  local s = session()
  if not s then M.mistake "no session is open; open one with: open PATH, or s = msdbg.listen()" end
  return s
end

function M.number(definition, text, what)
  local n = tonumber(text)
  if not n or n % 1 ~= 0 then M.usage(definition, format("%s: %s is expected, not '%s'", definition.name, what, text)) end
  return n
end

--- The watchpoint with the number `text`.
---@return msdbg.Watch
function M.watchpoint(s, definition, text)
  local id, ids = M.number(definition, text, "the number of a watchpoint"), {}
  for i, watch in ipairs(s:watches()) do
    if watch.id == id then return watch end
    ids[i] = format("%d", watch.id)
  end
  M.mistake(format("%s: no watchpoint %d (have %s)", definition.name, id, #ids > 0 and concat(ids, ", ") or "none"))
end

--- Live: makes the training keep the values of these nodes from the next step on. True if it did not do so before.
---@param on string  a selector, or the name of a tensor
function M.keep_readable(s, on)
  if s.kind ~= "live" or s.state ~= "held" then return false end
  local ok, kept = pcall(s.keep_readable, s, (on:gsub(":%a*:?%d+$", "")))
  return ok and kept > 0
end

--- A selector or tensor name may be quoted, as in Lua.
function M.unquote(text)
  text = text:match "^%s*(.-)%s*$"
  return text:match '^"([^"]*)"$' or text:match "^'([^']*)'$" or text
end

--- Removes `--name VALUE` and `--name=VALUE` from the words of a command.
---@return string rest
---@return table<string, string> options
function M.options(definition, rest)
  local options, known, kept, at = {}, {}, {}, 1
  for _, option in ipairs(definition.options or {}) do known[option[1]] = option end
  if not definition.options then return rest, options end
  while true do
    local first, last, name, sign = rest:find("%-%-([%a][%w%-]*)(=?)", at)
    if not first then break end
    if first > 1 and not rest:sub(first - 1, first - 1):match "%s" then
      kept[#kept + 1] = rest:sub(at, last)
      at = last + 1
    else
      kept[#kept + 1] = rest:sub(at, first - 1)
      at = last + 1
      local option = known[name]
      if not option then
        local names = {}
        for other in pairs(known) do names[#names + 1] = other end
        table.sort(names)
        local close = core.nearest(name, names, 1)[1]
        M.mistake(format("%s: unknown option '--%s'%s", definition.name, name,
          close and format(" (did you mean '--%s'?)", close) or "; there is --" .. concat(names, ", --")))
      end
      if option[2] == "" then
        options[name] = "true"
      else
        local from, to, value = rest:find('^%s*"([^"]*)"', at)
        if not from then from, to, value = rest:find("^%s*'([^']*)'", at) end
        if not from then from, to, value = rest:find(sign == "=" and "^(%S+)" or "^%s*(%S+)", at) end
        if not from then M.mistake(format("%s: --%s wants a value: --%s %s", definition.name, name, name, option[2])) end
        at = to + 1
        options[name] = value
      end
    end
  end
  kept[#kept + 1] = rest:sub(at)
  return concat(kept):match "^%s*(.-)%s*$", options
end

-- ---- commands of the program -----------------------------------------------------------------------------------------

--- Splits words like a shell: quotes keep blanks together and are removed; a backslash is an ordinary character.
---@param text string
---@return string[]
function M.words(text)
  local words, at = {}, text:match "^%s*()"
  while at <= #text do
    local word = {}
    while at <= #text and not text:match("^%s", at) do
      local quote = text:match("^[\"']", at)
      if quote then
        local last = text:find(quote, at + 1, true)
        if not last then M.mistake(format("the quote at %s is not closed", text:sub(at))) end
        word[#word + 1] = text:sub(at + 1, last - 1)
        at = last + 1
      else
        local part = text:match("^[^%s\"']+", at)
        word[#word + 1] = part
        at = at + #part
      end
    end
    words[#words + 1] = concat(word)
    at = text:match("^%s*()", at)
  end
  return words
end

-- A variable that holds a tensor can replace a tensor name: the command gets the tensor's name and position.
local function name_tensor(definition, words)
  local tensor = definition.complete == "tensor" and words[1] and M.state.held and M.state.held(words[1])
  if not tensor then return end
  words[1] = tensor.name
  if definition.name == "bisect" then return end  -- which searches the steps
  for _, word in ipairs(words) do
    if word:match "^%-%-steps?$" or word:match "^%-%-steps?=" then return end
  end
  words[#words + 1], words[#words + 2] = "--step", format("%d", tensor.step)
  words[#words + 1], words[#words + 2] = "--rank", format("%d", tensor.rank)
end

--- Runs a command of the program on the open session.
---@param definition table
---@param session fun(): msdbg.Session?
---@param words string[]
---@return string
function M.run_shared(definition, session, words)
  name_tensor(definition, words)
  local all = { definition.name }
  for i, word in ipairs(words) do all[i + 1] = word end
  return core.run_command(session(), all)
end

local function option_of(info)
  local long
  for _, name in ipairs(info.names) do long = long or name:match "^%-%-(.*)$" end
  return { long or info.names[1], info.value, info.help, names = info.names, common = info.common }
end

-- Commands of the program come first in their groups.
for _, info in ipairs(core.commands()) do
  local options = {}
  for i, option in ipairs(info.options) do options[i] = option_of(option) end
  local examples = {}
  for i, example in ipairs(info.examples) do examples[i] = example[1] .. (example[2] ~= "" and "    " .. example[2] or "") end
  heading = info.group
  local definition
  definition = {
    name = info.name, also = #info.also > 0 and info.also or nil, usage = info.usage, summary = info.summary, details = info.details,
    complete = info.complete, examples = examples, options = options, words = info.words, verbs = info.verbs, shared = true,
    run = function(session, rest) return M.run_shared(definition, session, M.words(rest)) end,
  }
  M.command(definition)
end

M.align = formats.columns

return M
