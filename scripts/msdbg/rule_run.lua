-- From chosen rules to what a check takes: setup and select run here, the other phases are handed over as functions.
local core = require "msdbg.core"
local catalogue = require "msdbg.rule_catalogue"
local rule = require "msdbg.rule"
local rules = require "msdbg.rule_library"
local training = require "msdbg.training"

local format = string.format
local debug, error, ipairs, rawequal, tostring, type = debug, error, ipairs, rawequal, tostring, type

local M = {}

local function place_of(f)
  local info = debug.getinfo(f, "S")
  return format("%s:%d", info.short_src, info.linedefined)
end

-- Selectors of rules on every tensor. Where no outputs were dumped, such a rule looks at inputs.
local EVERYTHING = { ["@all"] = true, ["not @constant"] = true }

-- Replaces `@team` of a profile's collections by its definition.
local function expand(selector, collections)
  if type(selector) ~= "string" or not collections then return selector end
  return (selector:gsub("@([%w_-]+)", function(name)
    return collections[name] and "(" .. collections[name] .. ")"
  end))
end

local function answer(check, value)
  local kind = type(value)
  if value == nil or kind == "boolean" or kind == "table" then return value end
  error(format("%s: check returned %s; nil, false, true or a table like { actual = 1 } is expected", place_of(check),
    kind == "string" and format("%q", value) or tostring(value)), 0)
end

local function found(f, name, value)
  if value == nil or type(value) == "table" then return value end
  error(format("%s: %s returned %s; nil or a list of { tensor = t, actual = 1 } is expected", place_of(f), name, tostring(value)), 0)
end

local function run_limited(budget, f, ...)
  local ok, value = core.limited(budget, f, ...)
  if ok then return true, value end
  return false, value
end

local function select_nodes(made, session, values, budget, collections)
  local select = made.select
  if select == nil then return "@all" end
  if type(select) ~= "function" then
    if type(select) == "table" and not core.class_of(select) then
      local list = {}
      for i, part in ipairs(select) do list[i] = expand(part, collections) end
      return list
    end
    return expand(select, collections)
  end
  local ok, chosen = run_limited(budget, select, session, values)
  if not ok then return nil, chosen end
  if chosen == nil then return false end  -- nothing in this network
  local kind = core.class_of(chosen) or type(chosen)
  if kind == "node set" and #chosen == 0 then return false end
  if kind == "table" and #chosen == 0 then return false end
  if kind ~= "string" and kind ~= "node set" and kind ~= "table" and kind ~= "node" then
    return nil, format("%s: select returned a %s; a selector or a set of nodes is expected", place_of(select), kind)
  end
  return expand(chosen, collections)
end

-- Operators whose outputs are uninitialised memory. nil: there are none.
local function unwritten_nodes(session)
  if session.kind ~= "dump" then return nil end
  local unwritten = session:nodes("@optimizer and not @parameter and not @constant", { optional = true })
    :filter(function(node) return node.unwritten end)
  return #unwritten > 0 and unwritten or nil
end

-- The nodes that a rule selects, without those whose outputs it must not judge.
local function written(session, on, unwritten)
  local all = session:nodes(on, { optional = true })
  local kept = all:minus(unwritten)
  return #kept < #all and kept or on
end

-- What a loss scale has answered is not a fault: such gradients change nothing. The rules for which this holds:
local ANSWERED = { tensor_overflow = true, ["nan-swallowed"] = true, ["dtype-saturation"] = true, ["float16-subnormal"] = true }

-- Rules judge a tensor one after the other, all through the same object: what is asked for each call is read once.
local function look_at(shared, t)
  if not rawequal(shared.tensor, t) then shared.tensor, shared.facts = t, {} end
end

--- One rule on one session. `options`: on, slots, name, optional (instead of the rule's own), budget, collections, turn, unwritten
--- (nodes whose outputs are uninitialised memory), shared (a table for all rules of a check: see training.facts_of).
---@return table|false|nil instance false: it names nothing in this network, or does not apply to this data
---@return string|false|nil why false: that is not worth a word
function M.instance(session, made, values, options)
  options = options or {}
  local budget = options.budget or rules.budget
  local shared = options.shared or {}
  local ctx = { state = {}, session = session, rule = made.name, shared = shared }
  if made.applies and not options.on then
    local ok, why = run_limited(budget, made.applies, session, values)
    if not ok then return nil, why end
    if not why or type(why) == "string" then return false, why end
  end
  if made.setup then
    local ok, why = run_limited(budget, made.setup, session, values, ctx)
    if not ok then return nil, why end
  end
  local on, why = options.on
  if not on then
    on, why = select_nodes(made, session, values, budget, options.collections)
    if not on then return on, why end
  end
  if type(on) == "string" then
    local fine, wrong = core.check_selector(on)
    if not fine then return nil, format("%s: select: %s", made.file or made.name, wrong) end
  end
  local slots = options.slots or made.slots
  local inputs_instead = not options.slots and slots == "output" and EVERYTHING[on] or false
  if not options.on and options.unwritten and slots == "output" then
    on = written(session, on, options.unwritten)
  end
  local optional = options.optional
  if optional == nil then optional = options.on == nil and made.optional end
  local instance = {
    rule = made.name, abbr = made.abbr, summary = made.summary, cause = made.cause, next = made.next, file = made.file,
    severity = made.severity, name = options.name, on = on, slots = slots, optional = optional,
    inputs_instead = inputs_instead,
    turn = options.turn or 0, budget = budget, needs = made.needs, operand_has = made.operand_has,
  }
  local answered = ANSWERED[made.name] and training.answered_overflow(session)
  if answered then
    function instance.except(t) return answered(t) end
  end
  if made.catalogue then
    instance.when = catalogue.when(made, values)
  elseif made.when then
    instance.when = rule.fill_in(format("rule '%s'", made.name), made.when, made.params, values)
  end
  if instance.when then
    local fine, wrong = core.check_when(instance.when)
    if not fine then return nil, format("%s: when: %s", made.file or made.name, wrong) end
    return instance
  end
  if made.compares then
    instance.compares = made.compares
    return instance
  end
  local check, step_end, finish = made.check, made.step_end, made.finish
  -- Without it, the core calls nothing for a tensor.
  if check then
    function instance.check(t, previous, step, rank)
      look_at(shared, t)
      ctx.step, ctx.rank, ctx.previous = step, rank, previous
      return answer(check, check(t, values, ctx))
    end
  end
  if step_end then
    function instance.step_end(rank, step)
      ctx.step, ctx.rank, ctx.previous = step, rank, nil
      return found(step_end, "step_end", step_end(session, values, ctx))
    end
  end
  if finish then
    function instance.finish()
      ctx.previous = nil
      return found(finish, "finish", finish(session, values, ctx))
    end
  end
  return instance
end

-- Adds required rules, and numbers the rules such that those named in requires and after have a lower turn.
local function arrange(chosen, registry, values_of, problems)
  local index, list = {}, {}
  for _, made in ipairs(chosen) do index[made.name] = made end
  local queue = {}
  for i, made in ipairs(chosen) do queue[i] = made end
  local at = 1
  while queue[at] do
    local made, missing = queue[at], nil
    for _, name in ipairs(made.requires) do
      local other = registry.by_name[name:lower()]
      if not other then
        missing = name
      elseif not index[other.name] then
        index[other.name] = other
        queue[#queue + 1] = other
        values_of[other] = values_of[other] or rule.defaults(other)
      end
    end
    if missing then
      local reason = format("%s: it requires '%s', which is not there", made.file or made.name, missing)
      problems[#problems + 1] = { rule = made.name, reason = reason }
      index[made.name] = nil
    else
      list[#list + 1] = made
    end
    at = at + 1
  end
  local turns = {}
  local function turn_of(made, path)
    if turns[made] then return turns[made] end
    if path[made] then return nil end
    path[made] = true
    local turn = 0
    for _, names in ipairs { made.requires, made.after } do
      for _, name in ipairs(names) do
        local other = index[name]
        if other then
          local before = turn_of(other, path)
          if not before then return nil end
          if before + 1 > turn then turn = before + 1 end
        end
      end
    end
    path[made] = nil
    turns[made] = turn
    return turn
  end
  local ordered = {}
  for _, made in ipairs(list) do
    local turn = turn_of(made, {})
    if turn then
      ordered[#ordered + 1] = { rule = made, turn = turn }
    else
      local reason = format("%s: 'requires' and 'after' lead in a circle back to it", made.file or made.name)
      problems[#problems + 1] = { rule = made.name, reason = reason }
    end
  end
  return ordered
end

local function is_about_ranks(made)
  for _, tag in ipairs(made.tags) do
    if tag == "ranks" then return true end
  end
  return false
end

--- Instances of chosen rules on a session, and the problems of those that cannot run.
---@param plan table what rule_plan.make() gave
function M.prepare(session, plan)
  local problems = {}
  for i, problem in ipairs(plan.problems) do problems[i] = problem end
  local instances, few_ranks, unwritten, shared = {}, {}, unwritten_nodes(session), {}
  for _, entry in ipairs(arrange(plan.chosen, plan.registry, plan.values, problems)) do
    local made = entry.rule
    local options = { budget = plan.budget, collections = plan.collections, turn = entry.turn, slots = plan.slots,
      unwritten = unwritten, shared = shared }
    local instance, why = M.instance(session, made, plan.values[made], options)
    if instance then
      instances[#instances + 1] = instance
    elseif instance == false and why ~= nil then
      local list = is_about_ranks(made) and few_ranks or problems
      if why then list[#list + 1] = { rule = made.name, kind = "idle", reason = why } end
    elseif why then
      problems[#problems + 1] = { rule = made.name, reason = why }
    else
      problems[#problems + 1] = { rule = made.name, kind = "idle", reason = "selector matched nothing" }
    end
  end
  -- That there are too few ranks to compare is worth a word only where nothing else was asked.
  for _, problem in ipairs(#instances == 0 and few_ranks or {}) do problems[#problems + 1] = problem end
  return instances, problems
end

return M
