-- Completion at the prompt: commands and their options, selectors and node names level by level, conditions and their parameters,
-- fields and methods of objects, options of calls, files.
local core = require "msdbg.core"
local help = require "msdbg.repl_help"
local infer = require "msdbg.infer"
local redirect = require "msdbg.repl_redirect"
local reference = require "msdbg.reference"
local registry = require "msdbg.repl_registry"
local watch_words = require "msdbg.watch_words"

local format, sort = string.format, table.sort
local ipairs, math, pairs, pcall, type = ipairs, math, pairs, pcall, type

local M = {}

local MOST = 200

local collections = { "@weight", "@gradient", "@activation", "@parameter", "@constant", "@optimizer", "@loss", "@from_weights", "@scaled", "@all" }
local prefixes = { "op:", "dtype:", "scope:", "stack:", "rank:", "graph:" }
local functions = { "abs(", "sqrt(", "exp(", "log(", "log2(", "sign(", "floor(", "min(", "max(", "isnan(", "isinf(", "isfinite(",
  "any(", "all(", "count(", "percent(", "sum(", "mean(",
  "std(", "norm1(", "norm2(", "norminf(", "finite(", "prev", "size", "step", "rank", "dtype_max",
  "dtype_min_normal", "dtype_eps" }

local modules = { "msdbg", "msdbg.dtype", "msdbg.format", "msdbg.json", "msdbg.options", "msdbg.plot", "msdbg.progress",
  "msdbg.rule", "msdbg.series", "msdbg.steps", "msdbg.table", "msdbg.tensor_pictures", "msdbg.test" }

local function add_matching(found, word, names, before)
  for _, name in ipairs(names) do
    if type(name) == "string" and name:sub(1, #word) == word then found[#found + 1] = (before or "") .. name end
  end
  return found
end

local function open_session()
  local s = registry.state.session()
  if s and s.state ~= "closed" then return s end
end

local function lookup(name) return registry.state.lookup(name) end

-- ---- names in the data ----------------------------------------------------------------------------------------------

local function numbers(values)
  local names = {}
  for i, value in ipairs(values) do names[i] = format("%d", value) end
  return names
end

local function complete_node(word)
  local s = open_session()
  return s and core.node_names(s, word, MOST) or {}
end

-- Candidates after `op:`, `scope:`, `rank:`, `graph:`.
local function complete_term(s, kind, rest)
  local found = {}
  if kind == "op" then return add_matching(found, rest, core.op_types(s), "op:") end
  if kind == "scope" then
    for _, name in ipairs(core.node_names(s, rest, MOST)) do
      if name:sub(-1) == "/" then found[#found + 1] = "scope:" .. name end
    end
  elseif kind == "rank" then add_matching(found, rest, numbers(s.ranks), "rank:")
  elseif kind == "graph" then
    for _, graph in ipairs(s.graphs) do add_matching(found, rest, { graph.name }, "graph:") end
  end
  return found
end

local function complete_selector(word)
  local s = open_session()
  local kind, rest = word:match "^(%a+):(.*)$"
  if kind then return s and complete_term(s, kind, rest) or {} end
  local found = add_matching({}, word, collections)
  if word ~= "" then add_matching(found, word, prefixes) end
  if not word:match "^[@/]" then
    for _, name in ipairs(complete_node(word)) do found[#found + 1] = name end
  end
  return found
end

-- A node name, then its slots; also variables that hold a tensor.
local function complete_tensor(word)
  local s = open_session()
  local name, slot = word:match "^(.+):([%a]*:?%d*)$"
  if s and name then
    local ok, node = pcall(s.node, s, name)
    if not ok then return {} end
    local slots = {}
    for i = 0, math.max(#node.outputs, 1) - 1 do slots[#slots + 1] = format("output:%d", i) end
    for i = 0, #node.inputs - 1 do slots[#slots + 1] = format("input:%d", i) end
    return add_matching({}, slot, slots, name .. ":")
  end
  local found = {}
  for key, value in pairs(registry.state.env) do
    if type(key) == "string" and not key:match "^_" and core.class_of(value) == "tensor" then add_matching(found, word, { key }) end
  end
  for _, each in ipairs(complete_node(word)) do found[#found + 1] = each end
  return found
end

-- In the case as typed; if nothing matches, in any case.
local function complete_condition(word)
  local names = watch_words.names()
  local found = add_matching({}, word, names)
  if #found > 0 then return found end
  for _, name in ipairs(names) do
    if name:sub(1, #word):lower() == word:lower() then found[#found + 1] = name end
  end
  return found
end

-- After the selector: a condition, then its parameters, or an expression. Node names are not allowed there.
local function complete_watch(word, before)
  local _, when, open = watch_words.split(before:match "^%s*%S+%s+(.*)$" or "")
  if open then return complete_selector(word) end
  if not when then return add_matching(add_matching(complete_condition(word), word, functions), word, { "and", "or" }) end
  local condition = watch_words.condition(when:match "^[\"']?([%w_]+)%s" or "")
  if not condition then return add_matching({}, word, functions) end
  local found = {}
  if not when:match "=%s*$" then
    for _, name in ipairs(condition.params) do add_matching(found, word, { name .. "=" }) end
  end
  return found
end

local function complete_file(word) return core.file_names(word, MOST) end

-- ---- Lua ------------------------------------------------------------------------------------------------------------

local function keys_of(value)
  local names = {}
  for name in pairs(value) do
    if type(name) == "string" then names[#names + 1] = name end
  end
  sort(names)
  return names
end

local function members_of(owner)
  if owner.class then
    local names = {}
    for name in pairs(owner.class.members) do names[#names + 1] = name end
    sort(names)
    return names
  end
  return keys_of(owner.value)
end

local function complete_lua(word, before)
  local path, last = word:match "^(.*[%.:])([%w_]*)$"
  if path then
    local owner = infer.owner(before .. path, lookup)
    return owner and add_matching({}, last, members_of(owner), path) or {}
  end
  local found = {}
  for _, name in ipairs(infer.options(before, lookup) or {}) do add_matching(found, word, { name }) end
  -- Parameters of a condition are additional keys of the call that creates the watchpoint.
  local condition = #found == 0 and watch_words.condition(before:match "watch%s*%(?%s*{.*when%s*=%s*[\"']([%w_]+)" or "")
  if condition then add_matching(found, word, condition.params) end
  if #found > 0 then return found end
  add_matching(found, word, keys_of(registry.state.env))
  return add_matching(found, word, keys_of(registry.state.globals))
end

-- Inside a string: a file if the call takes one, a condition after `when`, else a selector.
local function complete_string(word, before)
  local ahead = before:match "^(.*)[\"'][^\"']*$" or ""
  if ahead:match "when%s*=%s*$" then
    local condition = complete_condition(word)
    return add_matching(condition, word, functions)
  end
  if ahead:match "[%s{,]rules?%s*=%s*$" then return add_matching({}, word, registry.rule_words()) end
  local call = ahead:match "([%a_]+)%s*%(?%s*$" or ""
  if call == "require" then return add_matching({}, word, modules) end
  for _, name in ipairs { "open", "save", "load", "dofile", "checkpoint", "html" } do
    if call:find("^" .. name) then return complete_file(word) end
  end
  if ahead:match "tensor%s*%(?%s*$" then return complete_tensor(word) end
  return complete_selector(word)
end

-- ---- commands -------------------------------------------------------------------------------------------------------

local completers = {
  selector = complete_selector, node = complete_node, tensor = complete_tensor, file = complete_file, condition = complete_condition,
  watch = complete_watch, lua = complete_lua,
  topic = function(word)
    local found = add_matching({}, word, help.topics())
    add_matching(found, word, registry.names())
    local owner, name = word:match "^([%a_]+)[%.:]([%w_]*)$"
    local class = owner and reference.class(owner)
    if class then return add_matching(found, name, members_of { class = class }, owner .. ".") end
    for _, each in ipairs(reference.load().classes) do add_matching(found, word, { (each.name:lower():gsub("^msdbg%.", "")) }) end
    return found
  end,
  step = function(word)
    local s = open_session()
    return s and add_matching({}, word, numbers(s.steps)) or {}
  end,
  rank = function(word)
    local s = open_session()
    return s and add_matching(add_matching({}, word, { "all" }), word, numbers(s.ranks)) or {}
  end,
  trend = function(word, before)
    if before:match "^%s*%S+%s+%S+%s" then return complete_selector(word) end
    return add_matching({}, word, members_of { class = reference.class "Stats" })
  end,
  rule = function(word) return add_matching({}, word, registry.rule_words()) end,
  info = function(word) return add_matching({}, word, registry.info_subjects) end,
  expression = function(word) return add_matching({}, word, functions) end,
  where = function(word, before)
    if not before:match "^%s*%S+%s+%S+%s" then return complete_tensor(word) end
    return add_matching(add_matching({}, word, { "nan", "inf", "bad", "finite", "zero" }), word, functions)
  end,
  ["watch number"] = function(word)
    local s, ids = open_session(), { "all" }
    if s then
      for _, watch in ipairs(s:watches()) do ids[#ids + 1] = format("%d", watch.id) end
    end
    return add_matching({}, word, ids)
  end,
}

-- Values of options that are not free text.
local option_values = {
  semantics = function() return { "compat", "finite" } end,
  slots = function() return { "output", "input", "all" } end,
  sort = function() return { "place", "value", "difference" } end,
  step = function() local s = open_session() return s and numbers(s.steps) or {} end,
  rank = function() local s = open_session() return s and numbers(s.ranks) or {} end,
}
option_values.rules = function() return registry.rule_words() end
option_values.steps, option_values.ranks = option_values.step, option_values.rank
option_values.format = function() return { "table", "json", "jsonl", "csv", "markdown" } end

-- Options that take the same values as words of commands.
local option_completers = {
  on = complete_selector, around = complete_node, output = complete_file, rule = complete_file, profile = complete_file,
  baseline = complete_file, bless = complete_file, suppress = complete_file, map = complete_file, loss = complete_file,
  report = complete_file,
  when = function(word) return add_matching(complete_condition(word), word, functions) end,
}

local function complete_command(command, word, before)
  if word:match "^%-" then
    local names = {}
    for i, option in ipairs(command.options or {}) do names[i] = "--" .. option[1] end
    return add_matching({}, word, names)
  end
  local option = before:match "%s%-%-([%a%-]+)[%s=]+[\"']?$"
  -- A quoted value may continue after its first word.
  option = option or before:match "%s%-%-([%a%-]+)[%s=]+\"[^\"]*$" or before:match "%s%-%-([%a%-]+)[%s=]+'[^']*$"
  for _, known in ipairs(command.options or {}) do
    if known[1] == option and known[2] ~= "" then
      if option_completers[option] then return option_completers[option](word) end
      return option_values[option] and add_matching({}, word, option_values[option]()) or {}
    end
  end
  local found = {}
  if #(command.verbs or {}) > 0 and before:match "^%s*%S+%s+$" then
    for _, verb in ipairs(command.verbs) do add_matching(found, word, { verb.name }) end
    return found
  end
  local completer = completers[command.complete or ""]
  return completer and completer(word, before) or {}
end

local function candidates(line, cursor)
  local before = line:sub(1, cursor)
  local asked, question = before:match "^%s*(%?)(.*)$"
  if asked then
    local word = question:match "[%w_%.:]*$"
    local found = complete_lua(word, question:sub(1, #question - #word))
    if question == word then
      for i, name in ipairs(found) do found[i] = "?" .. name end
    end
    return found
  end
  local word = before:match "[^ \t\"'`()%[%]{},=<>+*;]*$"
  local rest = before:sub(1, #before - #word)
  if rest:match "^%s*$" then
    local found = add_matching({}, word, registry.names())
    for _, name in ipairs(complete_lua(word, "")) do found[#found + 1] = name end
    return found
  end
  local command = registry.state.split_command(rest:match "^%s*(.*)$")
  if redirect.awaits_file(rest, command) then return complete_file(word) end
  if command then return complete_command(command, word, rest) end
  local _, double = rest:gsub('"', "")
  local _, single = rest:gsub("'", "")
  if double % 2 == 1 or single % 2 == 1 then return complete_string(word, rest) end
  return complete_lua(word, rest)
end

--- Candidates for the word that ends at `cursor` (bytes before it), best first, without duplicates.
---@param line string
---@param cursor integer
---@return string[]
function M.complete(line, cursor)
  local seen, unique = {}, {}
  for _, name in ipairs(candidates(line, cursor)) do
    if not seen[name] and #unique < MOST then
      seen[name] = true
      unique[#unique + 1] = name
    end
  end
  return unique
end

return M
