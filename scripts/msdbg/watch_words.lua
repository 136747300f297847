-- Parses `watch SELECTOR CONDITION`: finds the end of the selector, and reports unknown conditions.
local core = require "msdbg.core"
local registry = require "msdbg.repl_registry"

local format = string.format
local ipairs = ipairs

local M = {}

local JOINS = { ["and"] = true, ["or"] = true }

-- The term of a selector that starts at `at`: a whole quoted text, regular expression or bracket, else up to a blank.
local function term_at(text, at)
  for _, pattern in ipairs { '^"[^"]*"()', "^'[^']*'()", "^/[^/]*/()", "^%b()()" } do
    local behind = text:match(pattern, at)
    if behind and text:match("^%s", behind) then return behind end
  end
  return text:match("^%S+()", at)
end

--- Splits the text after `watch`. `on`: the selector, or ""; `when`: what follows it, or nil. `open`: the selector needs another
--- term, as after `and`.
---@param text string
---@return string on
---@return string? when
---@return boolean open
function M.split(text)
  local first = text:match "^%s*()"
  local at, last, open = first, first, true
  while at <= #text do
    local behind = term_at(text, at)
    local word = text:sub(at, behind - 1)
    if JOINS[word:lower()] and not open then
      open = true
    elseif not open then
      return text:sub(first, last - 1), text:sub(at), false
    elseif word:lower() ~= "not" then
      open = false
    end
    last = behind
    at = text:match("^%s*()", behind)
  end
  return text:sub(first, last - 1), nil, open
end

local known

-- Lower-case id or abbreviation -> condition.
local function by_word()
  if known then return known end
  known = {}
  for _, condition in ipairs(core.conditions()) do
    known[condition.id:lower()] = condition
    if condition.abbr ~= "" then known[condition.abbr:lower()] = condition end
  end
  return known
end

--- The condition with this id or abbreviation.
---@param word string
---@return { id: string, abbr: string, summary: string, params: string[] }?
function M.condition(word) return by_word()[word:lower()] end

--- Ids and abbreviations in the order of `help conditions`.
---@return string[]
function M.names()
  local names = {}
  for _, condition in ipairs(core.conditions()) do
    names[#names + 1] = condition.id
    if condition.abbr ~= "" then names[#names + 1] = condition.abbr end
  end
  return names
end

local MOST_NAMED = 6

-- Ids that resemble `word`; otherwise those made for the selected nodes.
local function proposals(word, on)
  local names = core.nearest(word, M.names(), 3)
  if #names > 0 then return names end
  local kind = on:match "@(%a+)" or "tensor"
  for pass = 1, 2 do
    for _, condition in ipairs(core.conditions()) do
      if #names < MOST_NAMED and condition.id:sub(1, #kind + 1) == kind .. "_" then names[#names + 1] = condition.id end
    end
    if #names > 0 or pass == 2 then return names end
    kind = "tensor"
  end
end

-- Why `when` is not a condition, with the nearest ones; nil for a condition, or for an expression, whose mistakes the core
-- explains.
local function unknown(on, when)
  local word = when:match "^[\"']?([%a_][%w_]*)"
  if not word or M.condition(word) or when:gsub("%f[%w_][%a_][%w_]*=[^=]", ""):find "[%(<>=~%+%*/]" then return end
  local rows, seen = {}, {}
  for _, name in ipairs(proposals(word, on)) do
    local condition = M.condition(name)
    if not seen[condition.id] then
      seen[condition.id] = true
      rows[#rows + 1] = { "  " .. condition.abbr, condition.id, condition.summary }
    end
  end
  return format("no condition '%s'; the nearest:\n%s\nhelp conditions lists all; an expression compares something: max(abs(x)) > 10",
    word, registry.align(rows))
end

--- Selector and condition of a command; an error if one of them is missing or unknown.
---@param name string  of the command
---@param text string  the text after it
---@return string on
---@return string when
function M.of(name, text)
  local definition = registry.find(name)
  local on, when, open = M.split(text)
  if on == "" then registry.usage(definition, name .. ": on which nodes?") end
  if open then registry.usage(definition, format("%s: the selector '%s' is not finished", name, on)) end
  if not when then registry.usage(definition, format("%s: no condition after the selector '%s'", name, on)) end
  local why = unknown(on, when)
  if why then registry.mistake(name .. ": " .. why) end
  local function bare(quoted) return quoted:match '^"([^"]*)"$' or quoted:match "^'([^']*)'$" or quoted end  -- as on the command line
  return bare(on), bare(when)
end

return M
