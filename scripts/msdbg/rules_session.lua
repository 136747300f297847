-- Rules on a session: s:check { rules = "default and not slow" } and s:watch { rule = "dead-relu", on = ..., limit = ... }.
local core = require "msdbg.core"

local pairs, type = pairs, type

local methods = core.members "session"
local check = methods.check

local rule_options = { rules = true, rule_files = true, params = true, profile = true, trust = true, rule_budget = true }

-- The rule library is read when the first rule is asked for.
local function plan_of(given)
  local plan = require "msdbg.rule_plan"
  local params, values = nil, nil
  if given.params then
    if type(given.params) ~= "table" then core.raise("invalid_argument", "check: option 'params': a table is expected") end
    if #given.params > 0 then params = given.params else values = given.params end
  end
  return plan.make {
    rules = given.rules, files = given.rule_files, params = params, values = values, profile = given.profile, trust = given.trust,
    budget = given.rule_budget,
  }
end

function methods.check(session, options)
  local wanted = false
  for name in pairs(type(options) == "table" and options or {}) do wanted = wanted or rule_options[name] end
  if not wanted then return check(session, options) end
  local given, rest = {}, {}
  for name, value in pairs(options) do
    if rule_options[name] then given[name] = value else rest[name] = value end
  end
  if type(given.rule_files) == "string" then given.rule_files = { given.rule_files } end
  local plan = plan_of(given)
  local instances, problems = require "msdbg.rule_run".prepare(session, plan)
  return core.run_rules(session, instances, problems, rest)
end

return methods
