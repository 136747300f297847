-- The return value of a rule file: `rule { name = ..., ... }`, checked field by field. Runs no function of the rule.
local core = require "msdbg.core"

local concat, sort = table.concat, table.sort
local format = string.format
local ipairs, pairs, setmetatable, tostring, type = ipairs, pairs, setmetatable, tostring, type

local M = {}

local Rule = { __name = "rule" }
Rule.__index = Rule
Rule.__tostring = function(rule) return format("<rule %s: %s>", rule.name, rule.summary) end

-- field -> accepted Lua types
local fields = {
  name = "string", abbr = "string", summary = "string", tags = "table", severity = "string", params = "table",
  select = "string|table|function|userdata", slots = "string", optional = "boolean", needs = "table",
  when = "string", check = "function", setup = "function", applies = "function", step_end = "function", finish = "function",
  requires = "table", after = "table", cause = "string", next = "string", catalogue = "string", compares = "string",
  operand_has = "string", cases = "table",
}
local param_fields = {
  type = "string", default = "any", min = "number", max = "number", choices = "table", unit = "string", help = "string",
  optional = "boolean", min_open = "boolean", fallback = "number|boolean",
}
local param_types = { number = true, integer = true, boolean = true, string = true, choice = true }
local severities = { info = true, warning = true, error = true }
-- Words of the choice language cannot be names of rules.
local reserved = { ["and"] = true, ["or"] = true, ["not"] = true, all = true, default = true, recommended = true, catalogue = true }

local stats = {
  count = true, min = true, max = true, mean = true, abs_mean = true, std = true, l2_norm = true, nan_count = true,
  pos_inf_count = true, neg_inf_count = true, zero_count = true, pos_count = true, neg_count = true, zero_percentage = true,
  first_bad = true, dtype_max_count = true,
}

local counts = {}
for name in pairs(stats) do counts[name] = name:find "_count$" and true or nil end

local function keys(map)
  local list = {}
  for key in pairs(map) do list[#list + 1] = tostring(key) end
  sort(list)
  return list
end

--- "text (did you mean 'x'?)" if one of `known` resembles `word`.
local function suggest(text, word, known)
  local close = core.nearest(tostring(word), known, 1)
  return close[1] and format("%s (did you mean '%s'?)", text, close[1]) or text
end
M.suggest = suggest

local function wrong(who, text, ...) core.raise("invalid_argument", who .. ": " .. format(text, ...), true) end

local function shown(value) return type(value) == "string" and format("'%s'", value) or tostring(value) end

local function check_keys(who, what, given, known)
  for _, key in ipairs(keys(given)) do
    if given[key] ~= nil and not known[key] then
      local text = suggest(format("%s '%s' is unknown", what, key), key, keys(known))
      wrong(who, "%s; there are %s", text, concat(keys(known), ", "))
    end
    local accepted = known[key]
    if accepted and accepted ~= "any" and not ("|" .. accepted .. "|"):find("|" .. type(given[key]) .. "|", 1, true) then
      wrong(who, "%s '%s': a %s is expected, not %s", what, key, accepted:gsub("|", " or "), shown(given[key]))
    end
  end
end

local function check_list(who, what, list, known)
  for i, word in ipairs(list) do
    if type(word) ~= "string" or word == "" then wrong(who, "field '%s': element %d is not a word but %s", what, i, shown(word)) end
    if known and not known[word] then
      wrong(who, "%s", suggest(format("field '%s': '%s' is not a statistic", what, word), word, keys(known)))
    end
  end
end

local function is_nan(value) return value ~= value end

--- The value of a parameter from user input or a file. Errors start with `who`.
function M.value_of(who, name, spec, given)
  local value = given
  if type(given) == "string" and spec.type ~= "string" and spec.type ~= "choice" then
    if spec.type == "boolean" then
      local words = { ["true"] = true, yes = true, ["1"] = true, ["false"] = false, no = false, ["0"] = false }
      value = words[given:lower()]
      if value == nil then wrong(who, "parameter '%s': true or false is expected, not '%s'", name, given) end
    else
      value = tonumber(given)
      if not value then wrong(who, "parameter '%s': '%s' is not a number", name, given) end
    end
  end
  if spec.type == "number" or spec.type == "integer" then
    if type(value) ~= "number" or is_nan(value) then wrong(who, "parameter '%s': a number is expected, not %s", name, shown(value)) end
    if spec.type == "integer" and value % 1 ~= 0 then
      wrong(who, "parameter '%s': a whole number is expected, not %s", name, shown(value))
    end
    local unit = spec.unit and " " .. spec.unit or ""
    if spec.min and (value < spec.min or spec.min_open and value == spec.min) then
      wrong(who, "parameter '%s': %s is below %s%s, the least that is accepted%s", name, shown(value), shown(spec.min), unit,
        spec.min_open and " (and itself is not)" or "")
    end
    if spec.max and value > spec.max then
      wrong(who, "parameter '%s': %s is above %s%s, the most that is accepted", name, shown(value), shown(spec.max), unit)
    end
  elseif spec.type == "boolean" then
    if type(value) ~= "boolean" then wrong(who, "parameter '%s': true or false is expected, not %s", name, shown(value)) end
  elseif type(value) ~= "string" then
    wrong(who, "parameter '%s': a text is expected, not %s", name, shown(value))
  end
  if spec.type == "choice" then
    for _, choice in ipairs(spec.choices) do
      if choice == value then return value end
    end
    wrong(who, "%s", suggest(format("parameter '%s': '%s' is not one of %s", name, value, concat(spec.choices, ", ")), value, spec.choices))
  end
  return value
end

local function check_param(who, name, spec)
  local what = format("%s: parameter '%s'", who, name)
  if type(spec) ~= "table" then
    wrong(who, "parameter '%s': a table like { type = \"number\", default = 1 } is expected, not %s", name, shown(spec))
  end
  check_keys(what, "field", spec, param_fields)
  if not param_types[spec.type] then
    local text = format("type %s: number, integer, boolean, string or choice is expected", shown(spec.type))
    wrong(what, "%s", suggest(text, spec.type or "", keys(param_types)))
  end
  if fields[name] then wrong(what, "the name is that of a field of rules; choose another") end
  if not name:match "^[%a_][%w_]*$" then wrong(what, "a name is made of letters, digits and _") end
  if spec.type == "choice" then
    if not spec.choices or #spec.choices == 0 then wrong(what, "choices are missing") end
    check_list(what, "choices", spec.choices)
  end
  if spec.default == nil and not spec.optional then wrong(what, "a default is missing") end
  if spec.default ~= nil then M.value_of(who, name, spec, spec.default) end
end

--- `when` with the parameters substituted for $name.
function M.fill_in(who, when, params, values)
  return (when:gsub("%$([%a_][%w_]*)", function(name)
    if not params[name] then wrong(who, "%s", suggest(format("field 'when': there is no parameter '%s'", name), name, keys(params))) end
    local value = values[name]
    if type(value) == "number" then
      if value % 1 == 0 and value >= -1e15 and value <= 1e15 then return format("%d", value) end
      return format("%.17g", value)
    end
    return tostring(value)
  end))
end

--- name -> default of a rule's parameters.
function M.defaults(rule)
  local values = {}
  for name, spec in pairs(rule.params) do values[name] = spec.default end
  return values
end

local function check_verdict_fields(rule, who)
  local ways = (rule.when and 1 or 0) + (rule.check and 1 or 0) + (rule.catalogue and 1 or 0) + (rule.compares and 1 or 0)
  if ways > 1 then wrong(who, "'when', 'check', 'compares' and 'catalogue' exclude each other") end
  if rule.compares and rule.compares ~= "ranks" then wrong(who, "field 'compares': ranks is expected, not %s", shown(rule.compares)) end
  if rule.operand_has and not rule.check then wrong(who, "field 'operand_has' belongs to rules with a 'check' function") end
  if rule.operand_has and not counts[rule.operand_has] then
    local text = format("field 'operand_has': a count is expected, not '%s'", rule.operand_has)
    wrong(who, "%s; there are %s", suggest(text, rule.operand_has, keys(counts)), concat(keys(counts), ", "))
  end
  if ways == 0 and not rule.step_end and not rule.finish then
    wrong(who, "it has no condition: add 'when' (an expression) or 'check' (a function of a tensor)")
  end
  if (rule.when or rule.catalogue or rule.compares) and (rule.step_end or rule.finish) then
    wrong(who, "'step_end' and 'finish' belong to rules with a 'check' function, '%s' is decided by the core",
      rule.when and "when" or rule.compares and "compares" or "catalogue")
  end
end

--- Checks `given` and turns it into a rule.
local function define(given)
  if type(given) ~= "table" then
    core.raise("invalid_argument", "rule: a table is expected: rule { name = \"my-rule\", ... }, not " .. shown(given), true)
  end
  local who = type(given.name) == "string" and format("rule '%s'", given.name) or "rule"
  check_keys(who, "field", given, fields)
  local rule = {}
  for key, value in pairs(given) do rule[key] = value end
  if not rule.name then wrong(who, "field 'name' is missing") end
  if not rule.name:match "^%w[%w_-]*$" then wrong(who, "a name is made of letters, digits, - and _") end
  if reserved[rule.name:lower()] then wrong(who, "the name is a word of --rules; choose another") end
  if not rule.summary then wrong(who, "field 'summary' is missing: say in one line what a finding means") end
  if #rule.summary >= 60 and not rule.catalogue then wrong(who, "field 'summary' has %d characters, 59 is the most", #rule.summary) end
  rule.tags, rule.needs = rule.tags or {}, rule.needs
  rule.requires, rule.after, rule.params = rule.requires or {}, rule.after or {}, rule.params or {}
  check_list(who, "tags", rule.tags)
  check_list(who, "requires", rule.requires)
  check_list(who, "after", rule.after)
  if rule.needs then
    local known = { previous = true, elements = true }
    for name in pairs(stats) do known[name] = true end
    check_list(who, "needs", rule.needs, known)
  end
  rule.severity = rule.severity or "warning"
  if not severities[rule.severity] then
    local text = format("field 'severity': info, warning or error is expected, not '%s'", rule.severity)
    wrong(who, "%s", suggest(text, rule.severity, keys(severities)))
  end
  if rule.optional == nil then rule.optional = true end
  rule.slots = rule.slots or "output"
  for _, name in ipairs(keys(rule.params)) do check_param(who, name, rule.params[name]) end
  check_verdict_fields(rule, who)
  if rule.when then
    local text = M.fill_in(who, rule.when, rule.params, M.defaults(rule))
    local ok, why = core.check_when(text)
    if not ok then wrong(who, "field 'when': %s", why) end
  end
  return setmetatable(rule, Rule)
end

--- True for results of `rule { ... }`.
function M.is_rule(value) return type(value) == "table" and getmetatable(value) == Rule end
M.keys = keys

return setmetatable(M, { __call = function(_, given) return define(given) end })
