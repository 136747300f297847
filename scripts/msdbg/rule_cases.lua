-- Test cases of rules: small tensors with the expected verdict, run by the same engine as a dump.
local core = require "msdbg.core"
local rule = require "msdbg.rule"
local run = require "msdbg.rule_run"
local rules = require "msdbg.rule_library"

local concat, format = table.concat, string.format
local abs, floor, huge = math.abs, math.floor, math.huge
local error, io, ipairs, pairs, tostring, type = error, io, ipairs, pairs, tostring, type

local M = {}

local case_fields = {
  name = true, x = true, shape = true, dtype = true, prev = true, params = true, expect = true, steps = true, step = true, op = true,
  node = true, slot = true, inputs = true, overflow = true, equals = true, trainable = true, live = true, select = true, tensors = true,
  hit_steps = true, hits = true, actual = true, needs = true, rank = true,
}
local tensor_fields = {
  x = true, shape = true, dtype = true, op = true, node = true, slot = true, inputs = true, overflow = true, equals = true, trainable = true,
  rank = true,
}
local step_fields = { step = true }  -- an entry of `steps` is a tensor that may specify its step
for field in pairs(tensor_fields) do step_fields[field] = true end
local verdicts = { hit = true, clean = true, ["not checked"] = true }
local words = { nan = 0 / 0, inf = huge, ["-inf"] = -huge, ["+inf"] = huge }
local most_steps = 10000

local function check_fields(what, given, known)
  for _, key in ipairs(rule.keys(given)) do
    if not known[key] then error(rule.suggest(format("%s: field '%s' is unknown", what, key), key, rule.keys(known)), 0) end
  end
end

-- Nested lists are row-major; their lengths give the shape unless it is specified.
local function flatten(x, values, shape, depth)
  if type(x) ~= "table" then
    local value = type(x) == "string" and words[x:lower()] or x
    if type(value) == "boolean" then value = value and 1 or 0 end
    if type(value) ~= "number" then error(format("'%s' is not a number (nor \"nan\", \"inf\", \"-inf\")", tostring(x)), 0) end
    values[#values + 1] = value
    return
  end
  if shape[depth] and shape[depth] ~= #x then error(format("a list of %d elements is next to one of %d", #x, shape[depth]), 0) end
  shape[depth] = #x
  for i = 1, #x do flatten(x[i], values, shape, depth + 1) end
end

local function tensor_of(from, case, step)
  local x = from.x
  if x == nil then error("a tensor has no 'x'", 0) end
  local values, shape = {}, {}
  flatten(x, values, shape, 1)
  local op = from.op or case.op
  local node = from.node or case.node or "Default/network/case-Layer/" .. (op or "Case") .. "-op0"
  local flag = from.overflow
  if flag == nil then flag = case.overflow end
  return {
    node = node, op = op or node:match "([%w_]+)%-op%d+$" or "Case", step = step, slot = from.slot or case.slot,
    dtype = from.dtype or case.dtype,
    shape = from.shape or case.shape or shape, values = values, inputs = from.inputs or case.inputs,
    overflow = flag, equals = from.equals, trainable = from.trainable or case.trainable, rank = from.rank or case.rank,
  }
end

-- A step is one tensor, or { tensors = { ... } }.
local function add_step(list, entry, case, step)
  if type(entry) ~= "table" then error(format("step %d is not a table but %s", step, tostring(entry)), 0) end
  if not entry.tensors then
    check_fields(format("step %d", step), entry, step_fields)
    list[#list + 1] = tensor_of(entry, case, step)
    return
  end
  for _, one in ipairs(entry.tensors) do
    check_fields(format("step %d", step), one, tensor_fields)
    list[#list + 1] = tensor_of(one, case, step)
  end
end

-- All tensors of a case, and the steps to judge.
local function tensors_of(case)
  local list = {}
  if case.step then
    for i = 0, most_steps - 1 do
      local entry = case.step(i)
      if entry == nil then break end
      add_step(list, entry, case, i)
    end
  elseif case.steps then
    for i, entry in ipairs(case.steps) do add_step(list, entry, case, type(entry) == "table" and entry.step or i - 1) end
  elseif case.prev then
    list[1] = tensor_of({ x = case.prev }, case, 0)
    list[2] = tensor_of({ x = case.x }, case, 1)
    return list, "1"
  elseif case.tensors then
    add_step(list, { tensors = case.tensors }, case, 0)
  else
    list[1] = tensor_of({ x = case.x }, case, 0)
  end
  return list
end

local function verdict_of(result)
  if #result.hits > 0 then return "hit" end
  local last = 0
  for _, step in ipairs(result.steps) do last = step end
  for _, entry in ipairs(result.not_checked) do
    if entry.step == last then return "not checked", entry.reason end
  end
  return "clean"
end

local function steps_text(hits)
  local seen, list = {}, {}
  for _, hit in ipairs(hits) do
    if not seen[hit.step] then seen[hit.step], list[#list + 1] = true, tostring(hit.step) end
  end
  return concat(list, ",")
end

-- nil if the result is as expected, else expected, actual.
local function compare(case, result)
  for _, entry in ipairs(result.not_checked) do
    if entry.reason:find("^rule error") then return case.expect, entry.reason end
  end
  if result.problem then return case.expect, result.problem end
  local verdict, reason = verdict_of(result)
  if verdict ~= case.expect then
    if reason then return case.expect, format("%s (%s)", verdict, reason) end
    return case.expect, verdict == "hit" and format("hit: %s", tostring(result.hits[1])) or verdict
  end
  if case.hit_steps then
    local wanted = concat(case.hit_steps, ",")
    local got = steps_text(result.hits)
    if got ~= wanted then return "hits in steps " .. wanted, "hits in steps " .. got end
  end
  if case.hits and #result.hits ~= case.hits then return format("%d hits", case.hits), format("%d hits", #result.hits) end
  if case.actual then
    local got = result.hits[1] and tonumber(result.hits[1].details.actual)
    if not got or abs(got - case.actual) > 1e-6 * abs(case.actual) then
      return format("actual %g", case.actual), "actual " .. tostring(got)
    end
  end
end

local function run_case(made, case, budget)
  check_fields("the case", case, case_fields)
  if not verdicts[case.expect] then
    error(format("expect = %s: \"hit\", \"clean\" or \"not checked\" is expected", tostring(case.expect)), 0)
  end
  local values = rule.defaults(made)
  for name, value in pairs(case.params or {}) do
    if not made.params[name] then error(rule.suggest(format("there is no parameter '%s'", name), name, rule.keys(made.params)), 0) end
    values[name] = rule.value_of("the case", name, made.params[name], value)
  end
  local list, steps = tensors_of(case)
  local session = core.memory_session(case.live and "live" or "dump", list)
  -- Nodes in cases have arbitrary names: the rule gets all of them unless the case uses the rule's selector.
  local on = not case.select and "@all or @constant" or nil
  local instance, why = run.instance(session, made, values, { on = on, optional = true, budget = budget })
  if instance == false then return { hits = {}, not_checked = {}, steps = {} } end
  if not instance then return { problem = why, hits = {}, not_checked = {}, steps = {} } end
  local result = core.run_rules(session, { instance }, {}, { steps = steps or "all" })
  local problem
  for _, entry in ipairs(result.rule_problems) do
    -- A case may test that a rule selects nothing.
    if not problem and entry.reason:find "^rule error" then problem = entry.reason end
  end
  return { hits = result.hits, not_checked = result.not_checked, steps = result.steps, problem = problem }
end

--- Runs the cases of one rule: {name, file, cases, failures = {{case, expected, actual}}}.
function M.test(made, budget)
  local report = { name = made.name, file = made.file, cases = made.cases and #made.cases or 0, failures = {} }
  if report.cases == 0 then
    report.failures[1] = { case = "", expected = "cases", actual = "the rule has none" }
    return report
  end
  for i, case in ipairs(made.cases) do
    local name = type(case) == "table" and case.name or format("case %d", floor(i))
    local expected, actual
    local ok, problem = pcall(function()
      if type(case) ~= "table" then error("a case is a table", 0) end
      local result = run_case(made, case, budget)
      expected, actual = compare(case, result)
    end)
    if not ok then expected, actual = type(case) == "table" and case.expect or "a case", tostring(problem) end
    if expected then report.failures[#report.failures + 1] = { case = name, expected = expected, actual = actual } end
  end
  return report
end

-- Opening a directory succeeds, but reading from it fails.
local function is_directory(name)
  local file = io.open(name, "r")
  if not file then return false end
  local read, why = file:read(0)
  file:close()
  return read == nil and why ~= nil
end

--- Tests rules by name and the rules in files; by default all rules. Files that cannot be read count as failures.
---@param names? string[] names of rules, files or directories
function M.run(names, options)
  options = options or {}
  local reports, registry = {}
  local wanted, files = {}, {}
  for i, file in ipairs(options.files or {}) do files[i] = file end
  for _, name in ipairs(names or {}) do
    if name:find "[/]" or name:find "%.lua$" or is_directory(name) then files[#files + 1] = name else wanted[#wanted + 1] = name end
  end
  local list = {}
  if #files > 0 then
    registry = rules.registry { files = files, trust = options.trust }
    for _, made in ipairs(registry.rules) do
      if made.origin == "--rule" then list[#list + 1] = made end
    end
  else
    registry = options.trust and rules.registry(options) or rules.default_registry()
  end
  if #wanted > 0 then
    local choice = require "msdbg.rule_choice"
    for _, made in ipairs(choice.choose(concat(wanted, ","), registry)) do list[#list + 1] = made end
  elseif #files == 0 then
    for _, made in ipairs(registry.rules) do list[#list + 1] = made end
  end
  for _, problem in ipairs(registry.problems) do
    if #files == 0 and #wanted == 0 or problem.origin == "--rule" then
      local failure = { case = "", expected = "a rule file", actual = problem.reason }
      reports[#reports + 1] = { name = problem.rule, cases = 0, failures = { failure } }
    end
  end
  for _, made in ipairs(list) do reports[#reports + 1] = M.test(made, options.budget) end
  return reports, registry
end

return M
