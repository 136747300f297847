-- The table of the prompt's commands, and what their definitions share: session, options, mistakes.
--
-- A command has a name, perhaps short forms (`also`), a usage line, a summary under 60 characters, perhaps `details`, `examples`,
-- `options` = { { "name", "VALUE", "help" } } and `complete` = the kind of its words, `raw` = quotes are Lua's, and
-- run(session, rest, options) -> text, exit status; `session` is a function that gives the open session or nil.
local core = require "msdbg.core"
local formats = require "msdbg.format"

local concat, format = table.concat, formats.line
local ipairs, pairs, tonumber = ipairs, pairs, tonumber

local M = {}

local list, by_name = {}, {}

--- What commands share while the prompt runs: `env`, `displays`, `entries`, and from the evaluator `evaluate`, `enter`.
M.state = { displays = {}, entries = {}, next_display = 1 }

local heading

--- What the commands that follow have in common; `help` lists them below it.
---@param title string
function M.group(title) heading = title end

function M.command(definition)
  definition.group = heading
  list[#list + 1] = definition
  by_name[definition.name] = definition
  for _, other in ipairs(definition.also or {}) do by_name[other] = definition end
end

function M.list() return list end

--- The command of exactly this name or short form.
---@param word string
function M.find(word) return by_name[word] end

--- The commands that begin with `word`, each once.
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
  if not s then M.mistake "no session is open; open one with: s = msdbg.open \"PATH\", or s = msdbg.listen()" end
  return s
end

function M.number(definition, text, what)
  local n = tonumber(text)
  if not n or n % 1 ~= 0 then M.usage(definition, format("%s: %s is expected, not '%s'", definition.name, what, text)) end
  return n
end

--- A selector or tensor name may be in quotes, as it would in Lua.
function M.unquote(text)
  text = text:match "^%s*(.-)%s*$"
  return text:match '^"([^"]*)"$' or text:match "^'([^']*)'$" or text
end

-- What a value and the words `and`, `or`, `not` after it join, and where it ends.
local function joined(rest, value, at)
  local words, last = { value }, value:match "%S+$"
  while true do
    local word, ends = rest:match("^%s+(%S+)()", at)
    local open = last == "and" or last == "or" or last == "not"
    if not word or word:match "^%-%-" or not (open or word == "and" or word == "or") then return concat(words, " "), at end
    words[#words + 1], last, at = word, word, ends
  end
end

--- Takes `--name VALUE` and `--name=VALUE` out of what is after a command.
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
        -- A choice of rules is several words: `--rules default and not slow`.
        if option[2] == "CHOICE" then value, at = joined(rest, value, at) end
        options[name] = value
      end
    end
  end
  kept[#kept + 1] = rest:sub(at)
  return concat(kept):match "^%s*(.-)%s*$", options
end

M.align = formats.columns

return M
