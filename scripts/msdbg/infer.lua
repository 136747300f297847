-- Infers the type of the text before a cursor without running it: completion must not call functions or read tensors. Starts from
-- the values of variables and follows the types in the stubs.
local core = require "msdbg.core"
local reference = require "msdbg.reference"

local ipairs, rawget, type = ipairs, rawget, type

local M = {}

local closers = { [")"] = "(", ["]"] = "[", ["}"] = "{" }

-- Where the chain of names, calls and indices at the end of `text` begins.
local function chain_start(text)
  local i = #text
  while i > 0 do
    local c = text:sub(i, i)
    if closers[c] then
      local depth, opener = 0, closers[c]
      while i > 0 do
        local other = text:sub(i, i)
        if other == c then depth = depth + 1 elseif other == opener then depth = depth - 1 end
        if depth == 0 then break end
        i = i - 1
      end
      i = i - 1
    elseif c == '"' or c == "'" then
      i = i - 1
      while i > 0 and text:sub(i, i) ~= c do i = i - 1 end
      i = i - 1
    elseif c:find "[%w_%.:]" then i = i - 1
    elseif c == " " and text:sub(i + 1, i + 1):find "[\"'{%(]" and text:sub(1, i):find "[%w_]%s+$" then i = i - 1
    else break end
  end
  return i + 1
end

-- The class that a type text names: `msdbg.Tensor?`, `msdbg.Result|msdbg.RunResult`; for a list and `indexed`, that of the
-- elements.
local function class_of_type(text, indexed)
  if not text then return end
  if indexed then
    if text:match "^msdbg%.NodeSet" then return reference.class "Node" end
    return reference.class(text:match "^(msdbg%.[%w_]+)%[%]" or "")
  end
  return reference.class(text:match "^(msdbg%.[%w_]+)%??$" or text:match "^(msdbg%.[%w_]+)%??|" or "")
end

local function of_value(value)
  if value == nil then return end
  local class = core.class_of(value)
  if class then return { class = reference.class(reference.stub_name(class)) } end
  if value == require "msdbg" then return { class = reference.class "msdbg", value = value } end
  if type(value) == "table" then return { value = value } end
end

local function member(state, name)
  if state.class then
    local found = state.class.members[name]
    if not found then return end
    if found.params then return { returns = found.returns[1] and found.returns[1].type } end
    return { class = class_of_type(found.type), type = found.type }
  end
  if type(state.value) == "table" then return of_value(rawget(state.value, name)) end
end

--- The value before a `.` or `:` at the end of `text`: { class = stub class } or { value = table }, or nil.
---@param text string  including the separator
---@param lookup fun(name: string): any
---@return table?
function M.owner(text, lookup)
  text = text:gsub("[%.:]$", "")
  local chain = text:sub(chain_start(text))
  local first, rest = chain:match "^([%a_][%w_]*)(.*)$"
  if not first then return end
  local state = of_value(lookup(first))
  while state and rest ~= "" do
    local name, after = rest:match "^[%.:]([%a_][%w_]*)(.*)$"
    if name then
      state = member(state, name)
    else
      local called
      after = rest:match "^%s*%b()(.*)$" or rest:match "^%s*%b{}(.*)$" or rest:match '^%s*"[^"]*"(.*)$' or rest:match "^%s*'[^']*'(.*)$"
      called = after ~= nil
      after = after or rest:match "^%b[](.*)$"
      if not after then return end
      if called then state = { class = class_of_type(state.returns), type = state.returns }
      elseif state.type or state.class then
        local class = class_of_type(state.type or state.class.name, true)
        state = class and { class = class }
      else return end
    end
    rest = after
  end
  if state and (state.class or state.value) then return state end
end

--- Names of the options of the call that is open at the end of `text`: `s:watch { on = "x", ` gives on, when, ...; or nil.
---@param text string
---@param lookup fun(name: string): any
---@return string[]?
function M.options(text, lookup)
  local depth, at = 0, nil
  for i = #text, 1, -1 do
    local c = text:sub(i, i)
    if c == "}" then depth = depth + 1
    elseif c == "{" then
      if depth == 0 then at = i break end
      depth = depth - 1
    end
  end
  if not at then return end
  local call = text:sub(1, at - 1):gsub("[%s%(]+$", ""):gsub("%b\"\",?%s*$", ""):gsub("[%s%(]+$", "")
  local name = call:match "[%.:]([%a_][%w_]*)$"
  local owner = name and M.owner(call:sub(1, #call - #name), lookup)
  local found = owner and owner.class and owner.class.members[name]
  if not found or not found.params then return end
  local names = {}
  for _, param in ipairs(found.params) do
    local fields = param.type:match "{(.*)}"
    if fields then
      for key in (" " .. fields):gmatch "[%s,]([%a_][%w_]*)%??:" do names[#names + 1] = key end
    end
    local class = reference.options_of(param)
    for _, field in ipairs(class and class.fields or {}) do
      if not field.name:find "^%[" then names[#names + 1] = field.name end
    end
  end
  return names
end

return M
