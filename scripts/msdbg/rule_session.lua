-- Rules on a session: s:check { rules = "default and not slow" } and s:watch { rule = "dead-relu", on = ..., limit = ... }.
local core = require "msdbg.core"

local error, pairs, pcall, tostring, type = error, pairs, pcall, tostring, type

local methods = core.members "session"
local check = methods.check

local rule_options = { rules = true, rule_files = true, params = true, profile = true, trust = true, rule_budget = true }

-- The rule library is read when a rule is first used.
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
  -- By default (no watchpoints, no rule options) the check runs the default rules.
  local wanted = #session:watches() == 0
  for name in pairs(type(options) == "table" and options or {}) do wanted = wanted or rule_options[name] end
  if not wanted then return check(session, options) end
  local given, rest = {}, {}
  for name, value in pairs(options or {}) do
    if rule_options[name] then given[name] = value else rest[name] = value end
  end
  if type(given.rule_files) == "string" then given.rule_files = { given.rule_files } end
  local plan = plan_of(given)
  local instances, problems = require "msdbg.rule_run".prepare(session, plan)
  return core.run_rules(session, instances, problems, rest, plan)
end

local watch = methods.watch
local watch_options = { on = true, slots = true, name = true, optional = true }
local stop_options = { once = true, ignore = true, from_step = true, commands = true }

-- Keys that are not watchpoint options are parameters of the rule.
function methods.watch(session, options)
  if type(options) ~= "table" or options.rule == nil then return watch(session, options) end
  local rule, run, rules = require "msdbg.rule", require "msdbg.rule_run", require "msdbg.rule_library"
  local made = options.rule
  if type(made) == "string" then made = rules.get(made) end
  if not rule.is_rule(made) then core.raise("invalid_argument", "watch: option 'rule': a name or rule { ... } is expected", true) end
  local values, given, stop = rule.defaults(made), { budget = options.rule_budget }, {}
  for name, value in pairs(options) do
    if watch_options[name] then
      given[name] = value
    elseif stop_options[name] then
      stop[name] = value
    elseif name ~= "rule" and name ~= "rule_budget" then
      local spec = made.params[name]
      if not spec then
        local known = rule.keys(made.params)
        for option in pairs(watch_options) do known[#known + 1] = option end
        local text = ("watch: rule '%s' has no parameter '%s'"):format(made.name, tostring(name))
        core.raise("invalid_argument", rule.suggest(text, name, known), true)
      end
      values[name] = rule.value_of(("watch: rule '%s'"):format(made.name), name, spec, value)
    end
  end
  local instance, why = run.instance(session, made, values, given)
  if instance == false then core.raise("not_found", ("watch: rule '%s' names no node of this session"):format(made.name), true) end
  if not instance then core.raise("error", ("watch: rule '%s': %s"):format(made.name, why), true) end
  local added = core.watch_rule(session, instance)
  local ok, problem = pcall(added.set, added, stop)
  if not ok then
    added:remove()
    error(problem, 0)
  end
  return added
end

return methods
