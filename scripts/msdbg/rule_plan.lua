-- The rules to run: the choice, and parameters from the command line, a profile and the rules themselves. Everything is checked
-- here, before any tensor is read.
local core = require "msdbg.core"
local choice = require "msdbg.rule_choice"
local rule = require "msdbg.rule"
local rules = require "msdbg.rule_library"
local strict = require "msdbg.strict"

local format = string.format
local error, ipairs, pairs, pcall, tostring, type = error, ipairs, pairs, pcall, tostring, type

local M = {}

local function wrong(text, ...) core.raise("invalid_argument", format(text, ...), true) end

local profile_fields = { rules = "string", params = "table", collections = "table" }

--- Reads a profile: a Lua file that returns { rules = "expression", params = { ["rule"] = { name = value } }, collections = { ... } }.
function M.profile(path)
  local text, why = core.rule_text(path)
  if not text then wrong("--profile %s", why) end
  local chunk, syntax = load(text, "@" .. path, "t", strict.environment())
  if not chunk then wrong("--profile %s", syntax) end
  local ok, value = core.limited(rules.budget, chunk)
  if not ok then wrong("--profile %s", value) end
  if type(value) ~= "table" then wrong("--profile %s: it returned %s, not a table like { rules = \"default\" }", path, type(value)) end
  for _, key in ipairs(rule.keys(value)) do
    local expected = profile_fields[key]
    if not expected then
      local known = rule.suggest(format("field '%s' is unknown", key), key, rule.keys(profile_fields))
      wrong("--profile %s: %s; there are %s", path, known, table.concat(rule.keys(profile_fields), ", "))
    end
    if type(value[key]) ~= expected then
      wrong("--profile %s: field '%s': a %s is expected, not %s", path, key, expected, type(value[key]))
    end
  end
  for name, selector in pairs(value.collections or {}) do
    local fine, problem = core.check_selector(selector)
    if not fine then wrong("--profile %s: collection '%s': %s", path, name, problem) end
  end
  return value
end

local function set(who, made, values, name, value)
  local spec = made.params[name]
  if not spec then
    local names = rule.keys(made.params)
    local known = #names == 0 and "it has none" or "it has " .. table.concat(names, ", ")
    wrong("%s", rule.suggest(format("%s: %s has no parameter '%s' (%s)", who, made.name, name, known), name, names))
  end
  values[name] = rule.value_of(who, name, spec, value)
end

-- `RULE.NAME=VALUE`
local function split(text)
  local who, name, value = text:match "^([^.=]+)%.([^=]+)=(.*)$"
  if not who then wrong("--param '%s' is not of the form RULE.NAME=VALUE, e.g. TL.max_gt=100", text) end
  return who:match "^%s*(.-)%s*$", name:match "^%s*(.-)%s*$", value
end

-- The first deciding parameter, for `TZ 50`.
local function first_param(made)
  for _, spec in ipairs(core.catalogue()) do
    if spec.id == made.catalogue then return spec.params[1] and spec.params[1].name end
  end
  return rule.keys(made.params)[1]
end

local function values_for(chosen, inline, options, profile)
  local values = {}
  for _, made in ipairs(chosen) do
    values[made] = rule.defaults(made)
  end
  for name, params in pairs(profile and profile.params or {}) do
    local made = rules.get(name, options.registry)
    if type(params) ~= "table" then
      wrong("--profile: parameters of '%s' are a table such as { limit = 50 }, not %s", name, tostring(params))
    end
    if values[made] then
      for key, value in pairs(params) do set(format("--profile: %s", name), made, values[made], key, value) end
    else  -- not selected this time; its names are checked nevertheless
      local unused = rule.defaults(made)
      for key, value in pairs(params) do set(format("--profile: %s", name), made, unused, key, value) end
    end
  end
  for made, list in pairs(inline) do
    for _, entry in ipairs(list) do set("--rules", made, values[made], entry.name or first_param(made) or "", entry.value) end
  end
  for _, text in ipairs(options.params or {}) do
    local who, name, value = split(text)
    local made = rules.get(who, options.registry)
    if not values[made] then wrong("--param %s.%s: rule %s is not among those that run (%s)", who, name, made.name, options.expression) end
    set(format("--param '%s'", text), made, values[made], name, value)
  end
  for name, params in pairs(options.values or {}) do  -- from Lua: { ["dead-relu"] = { limit = 50 } }
    local made = rules.get(name, options.registry)
    if not values[made] then wrong("check: parameters are given for '%s', which is not among the rules that run", made.name) end
    if type(params) ~= "table" then
      wrong("check: parameters of '%s' are a table such as { limit = 50 }, not %s", name, tostring(params))
    end
    for key, value in pairs(params) do set(format("check: rule '%s'", name), made, values[made], key, value) end
  end
  return values
end

-- A condition of the catalogue without any limit.
local function lacks_limit(made, values)
  for name in pairs(made.params) do
    if values[name] ~= nil then return false end
  end
  return true
end

-- A condition with only a support parameter, or without any, is a mistake of the caller. It is an error only if the condition was
-- chosen by name: those chosen by a tag, a glob or a `not` are skipped if they have no limit.
local function check_conditions(chosen, values, named, problems)
  local catalogue = require "msdbg.rule_catalogue"
  local kept = {}
  for _, made in ipairs(chosen) do
    local keep = true
    if made.catalogue then
      local fine, why = core.check_when(catalogue.when(made, values[made]))
      if not fine and not named[made] and lacks_limit(made, values[made]) then
        local names = why:match "one of (.*)$" or table.concat(rule.keys(made.params), ", ")
        local reason = format("needs --param %s.NAME=VALUE with one of %s", made.name, names)
        problems[#problems + 1] = { rule = made.name, kind = "unset", reason = reason }
        keep = false
      elseif not fine then
        wrong("rule %s: %s", made.name, why)
      end
    elseif made.when then
      local fine, why = core.check_when(rule.fill_in(format("rule '%s'", made.name), made.when, made.params, values[made]))
      if not fine then wrong("rule '%s': %s", made.name, why) end
    end
    if keep then kept[#kept + 1] = made end
  end
  return kept
end

--- Options: rules (expression), files, params (list of RULE.NAME=VALUE), values (by rule), profile (path), trust, budget.
---@return table plan {registry, chosen, values, problems, notes, expression, budget, collections}
function M.make(options)
  local before = rules.budget
  rules.budget = options.budget or before  -- also applies to reading files
  local ok, plan = pcall(M.make_within, options)
  rules.budget = before
  if not ok then error(plan, 0) end
  return plan
end

function M.make_within(options)
  local profile = options.profile and M.profile(options.profile)
  local files = options.files or {}
  local registry = (#files > 0 or options.trust) and rules.registry(options) or rules.default_registry()
  local expression = options.rules or profile and profile.rules
  local chosen, inline, only_names, named, broken = {}, {}, false, {}, {}
  if expression then
    chosen, inline, only_names, named, broken = choice.choose(expression, registry)
  elseif #files > 0 then
    -- Without a choice, the named files select all their rules.
    for _, made in ipairs(registry.rules) do
      if made.origin == "--rule" then chosen[#chosen + 1] = made end
    end
    expression = "the rules of " .. table.concat(files, ", ")
  else
    expression = "default"
    chosen = choice.choose(expression, registry)
  end
  local plan = {
    registry = registry, chosen = chosen, expression = expression, budget = options.budget, collections = profile and profile.collections,
    slots = options.slots,
    notes = registry.notes, problems = {},
  }
  plan.values = values_for(chosen, inline, {
    registry = registry, params = options.params, values = options.values, expression = expression,
  }, profile)
  plan.chosen = check_conditions(chosen, plan.values, named, plan.problems)
  if #plan.chosen == 0 and #plan.problems > 0 then
    local first = plan.problems[1]
    wrong("--rules '%s': none of the rules can run; %s: %s", expression, first.rule, first.reason)
  end
  -- An unreadable file may contain a requested rule, unless every name was found.
  for _, problem in ipairs(registry.problems) do
    if not only_names or problem.origin == "--rule" or broken[problem] then plan.problems[#plan.problems + 1] = problem end
  end
  if #chosen == 0 and #plan.problems == 0 then wrong("%s: no rule is in them", expression) end
  return plan
end

return M
