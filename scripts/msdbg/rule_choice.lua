-- The language of --rules: names, abbreviations, tags and globs with and, or, not, ( ); a comma means or.
local core = require "msdbg.core"

local concat, format = table.concat, string.format
local ipairs, next, pairs, tonumber = ipairs, next, pairs, tonumber

local M = {}

local DEEPEST = 100  -- nesting of `not` and `(`

local function wrong(text, message, ...) core.raise("invalid_argument", format("--rules '%s': ", text) .. format(message, ...), true) end

-- Words, commas and parentheses. After a word, NAME=VALUE and numbers are its parameters.
local function tokens_of(text)
  local list, at = {}, 1
  while true do
    at = text:find("[^%s]", at)
    if not at then break end
    local mark = text:match("^[(),]", at)
    local word = mark or text:match("^[^%s(),]+", at)
    list[#list + 1] = { text = word, mark = mark, at = at }
    at = at + #word
  end
  return list
end

local function glob_pattern(glob)
  return "^" .. glob:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*", ".*"):gsub("%?", ".") .. "$"
end

-- The meaning of a word: a function rule -> boolean, or nil. Names take precedence over abbreviations, and these over tags.
local function meaning(word, rules)
  local lower = word:lower()
  if lower == "all" then return function() return true end, "all" end
  for _, rule in ipairs(rules) do
    if rule.name:lower() == lower or rule.abbr and rule.abbr:lower() == lower then
      return function(other) return other == rule end, "name", rule
    end
  end
  local function tagged(rule)
    for _, tag in ipairs(rule.tags) do
      if tag:lower() == lower then return true end
    end
    return false
  end
  for _, rule in ipairs(rules) do
    if tagged(rule) then return tagged, "tag" end
  end
  if word:find "[*?]" then
    local pattern = glob_pattern(lower)
    local function matches(rule) return rule.name:lower():find(pattern) ~= nil end
    for _, rule in ipairs(rules) do
      if matches(rule) then return matches, "glob" end
    end
  end
end

local function nothing() return false end

-- The unreadable file that probably contains the rule with that name: its file name, or a name in its message.
local function broken(word, problems)
  local lower = word:lower()
  for _, problem in ipairs(problems or {}) do
    if problem.rule:lower() == lower or problem.reason:lower():find("rule '" .. lower .. "'", 1, true) then return problem end
  end
end

local function known_words(rules)
  local seen, list = {}, {}
  local function add(word)
    if word and not seen[word] then seen[word], list[#list + 1] = true, word end
  end
  for _, rule in ipairs(rules) do
    add(rule.name)
    add(rule.abbr)
    for _, tag in ipairs(rule.tags) do add(tag) end
  end
  return list
end

local Parser = {}
Parser.__index = Parser

function Parser:peek() return self.tokens[self.at] end
function Parser:take(word)
  local token = self:peek()
  if token and (token.mark == word or not token.mark and token.text:lower() == word) then
    self.at = self.at + 1
    return token
  end
end

function Parser:parameters(rule, token)
  while true do
    local next_token = self:peek()
    if not next_token or next_token.mark then return end
    local name, value = next_token.text:match "^([^=]+)=(.*)$"
    if not name and tonumber(next_token.text) then value = next_token.text elseif not name then return end
    if not rule then
      wrong(self.text, "'%s' follows '%s', which is not a single rule and has no parameters", next_token.text, token.text)
    end
    self.at = self.at + 1
    local list = self.params[rule] or {}
    self.params[rule] = list
    list[#list + 1] = { name = name, value = value }
  end
end

function Parser:deeper(token)
  self.depth = self.depth + 1
  if self.depth <= DEEPEST then return end
  wrong(self.text:sub(1, 40) .. "...", "more than %d 'not' and '(' inside each other, at character %d", DEEPEST, token.at)
end

function Parser:word()
  local token = self:peek()
  if not token then wrong(self.text, "ends where a rule, a tag or '(' is expected") end
  if self:take "(" then
    self:deeper(token)
    local inner = self:any()
    self.depth = self.depth - 1
    if not self:take ")" then wrong(self.text, "the '(' at character %d is not closed", token.at) end
    return inner
  end
  local lower = token.text:lower()
  if token.mark or lower == "and" or lower == "or" then
    wrong(self.text, "'%s' at character %d: a rule, a tag or '(' is expected; e.g. --rules TO,TZ", token.text, token.at)
  end
  self.at = self.at + 1
  local test, _, rule = meaning(token.text, self.rules)
  local problem = not test and broken(token.text, self.problems)
  if problem then  -- skip it and continue with the others
    self.broken[problem] = true
    while self:peek() and self:peek().text:find("=", 1, true) do self.at = self.at + 1 end  -- its parameters
    return nothing
  end
  if not test then
    local close = core.nearest(token.text, known_words(self.rules), 3)
    local hint = #close > 0 and ": did you mean " .. concat(close, ", ") .. "?" or "; the command rules shows them"
    if self.left_out then hint = format("%s (the rules of %s were left out; --trust reads them)", hint, self.left_out) end
    wrong(self.text, "no rule and no tag is called '%s'%s", token.text, hint)
  end
  if rule then self.named[rule] = true else self.only_names = false end
  self:parameters(rule, token)
  return test
end

function Parser:negation()
  local token = self:peek()
  if not self:take "not" then return self:word() end
  self.only_names = false
  self:deeper(token)
  local inner = self:negation()
  self.depth = self.depth - 1
  return function(rule) return not inner(rule) end
end

function Parser:all()
  local parts = { self:negation() }
  while self:take "and" do parts[#parts + 1] = self:negation() end
  return #parts == 1 and parts[1] or function(rule)
    for _, part in ipairs(parts) do
      if not part(rule) then return false end
    end
    return true
  end
end

function Parser:any()
  local parts = { self:all() }
  while self:take "or" or self:take "," do parts[#parts + 1] = self:all() end
  return #parts == 1 and parts[1] or function(rule)
    for _, part in ipairs(parts) do
      if part(rule) then return true end
    end
    return false
  end
end

--- The rules that `text` selects, in order.
---@param text string
---@param registry table with rules, and left_out for messages
---@return table[] chosen
---@return table params  rule -> list of {name, value} given after it
---@return boolean only_names  `text` contains only names
---@return table named  rule -> true
---@return table broken  problem -> true, for files that were named and cannot be read
function M.choose(text, registry)
  local rules = registry.rules
  local parser = setmetatable({ text = text, tokens = tokens_of(text), at = 1, rules = rules, params = {}, named = {},
    only_names = true, depth = 0, left_out = registry.left_out, problems = registry.problems, broken = {} }, Parser)
  if #parser.tokens == 0 then wrong(text, "names no rule; e.g. --rules default or --rules TO,TZ") end
  local test = parser:any()
  local rest = parser:peek()
  if rest then wrong(text, "'%s' at character %d: 'and', 'or' or ',' is expected before it", rest.text, rest.at) end
  local chosen = {}
  for _, rule in ipairs(rules) do
    if test(rule) then chosen[#chosen + 1] = rule end
  end
  if #chosen == 0 and not next(parser.broken) then wrong(text, "chooses no rule") end
  for rule in pairs(parser.params) do
    if not test(rule) then wrong(text, "'%s' has parameters and is not chosen", rule.name) end
  end
  return chosen, parser.params, parser.only_names, parser.named, parser.broken
end

return M
