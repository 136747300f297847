-- `> FILE`, `>> FILE` and `| COMMAND` after an entry of the prompt.
--
-- Comparisons still work: after Lua, and after a command that takes an expression, `> FILE` needs a path that starts with /, ./,
-- ../ or ~/, and whatever Lua can parse is Lua.
local core = require "msdbg.core"
local formats = require "msdbg.format"

local format = formats.line
local ipairs, load, os = ipairs, load, os

local M = {}

-- The kinds of commands (their `complete`) that may take an expression, and those that may take a regular expression in slashes.
local EXPRESSIONS = { watch = true, where = true, expression = true, condition = true }
local SELECTORS = { selector = true, watch = true, trend = true }

local CLOSING = { ["("] = ")", ["["] = "]", ["{"] = "}" }

-- The position after the quoted text, bracket or regular expression that starts at `at`, or nil.
local function after_group(text, at, regex)
  local char = text:sub(at, at)
  if char == '"' or char == "'" then
    local close = text:find(char, at + 1, true)
    return close and close + 1
  elseif CLOSING[char] then
    local _, close = text:find("^%b" .. char .. CLOSING[char], at)
    return close and close + 1
  elseif char == "/" and regex and text:find("^%s", at - 1) then
    local close = text:find("/", at + 1, true)
    return close and close + 1
  end
end

-- Each `|`, `>` and `>>` after a blank and outside quotes and brackets: { at, sign, rest }.
local function operators(text, regex)
  local found, at = {}, 1
  while at <= #text do
    local after = after_group(text, at, regex)
    if after then
      at = after
    else
      local sign = text:match("^|", at) or text:match("^>>?", at)
      if sign and text:find("^%s", at - 1) and text:sub(at + #sign, at + #sign) ~= "=" then
        found[#found + 1] = { at = at, sign = sign, rest = text:sub(at + #sign):match "^%s*(.-)%s*$" }
        at = at + #sign
      else
        at = at + 1
      end
    end
  end
  return found
end

local function mistake(text) core.raise("fail", text, true) end

local function file_name(sign, rest)
  if rest == "" then mistake(format("a file name is missing after '%s'", sign)) end
  local quoted = rest:match '^"([^"]+)"$' or rest:match "^'([^']+)'$"
  if not quoted and rest:find "%s" then
    mistake(format("one file name is expected after '%s', not '%s'; quote a name with blanks", sign, rest))
  end
  local path = quoted or rest
  local home = os.getenv "HOME"
  return home and not quoted and path:match "^~/" and home .. path:sub(2) or path
end

local function target(found)
  if found.sign ~= "|" then return { sign = found.sign, path = file_name(found.sign, found.rest) } end
  if found.rest == "" then mistake "a shell command is missing after '|'" end
  return { sign = "|", command = found.rest }
end

local function cut(text, found) return text:sub(1, found.at - 1):match "^(.-)%s*$", target(found) end

-- True if it cannot be a comparison.
local function is_clear(found) return found.sign ~= ">" or found.rest:match "^[\"']?%.?%.?/" or found.rest:match "^~/" end

local function is_lua(text) return load("return " .. text) or load(text) end

--- The entry without its redirect, and the redirect; nil without one.
---@param text string
---@param command table?  the command at the start of the entry
---@return string?, table?
function M.split(text, command)
  if not text:find "%s[|>]" then return end
  if command and command.raw then return end  -- the entry after `p` or `display` has its own redirect
  if command then
    for _, found in ipairs(operators(text, SELECTORS[command.complete])) do
      if not EXPRESSIONS[command.complete] or is_clear(found) then return cut(text, found) end
    end
    return
  end
  if text:match "^=" or is_lua(text) then return end
  for _, found in ipairs(operators(text)) do
    local body = text:sub(1, found.at - 1)
    if is_clear(found) and (body:match "^%?" or is_lua(body)) then return cut(text, found) end
  end
end

--- Whether the next word after `text` is the file of a redirect.
---@param text string
---@param command table?  the command at the start of the entry
---@return boolean
function M.awaits_file(text, command)
  local found = operators(text, command and SELECTORS[command.complete])
  local last = found[#found]
  if not last or last.rest ~= "" then return false end
  return last.sign == ">>" or last.sign == ">" and command ~= nil and not command.raw and not EXPRESSIONS[command.complete]
end

local function send(to, text)
  if to.sign == ">" then core.write_file(to.path, text)
  elseif to.sign == ">>" then core.append_to_file(to.path, text)
  else
    local status = core.feed_shell(to.command, text)
    if status > 128 then return format("%s: ended by signal %d", to.command, status - 128) end
    if status ~= 0 then return format("%s: exit status %d", to.command, status) end
  end
  return ""
end

--- Runs an entry and sends its output to the redirect. Returns the results of `run`, with the output that remains for the prompt.
---@param to table
---@param run fun(): string, string, integer
function M.run(to, run)
  local printed, outcome, output, status = core.capture(run)
  if outcome == "incomplete" then return outcome, output, status end
  if output ~= "" then output = core.visible(output):gsub("\n+$", "") .. "\n" end
  return outcome, send(to, printed .. output), status
end

return M
