-- The rule engine: files, choice, parameters, phases, and rules that break.
local msdbg = require "msdbg"
local rule = require "msdbg.rule"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data, examples = ...
local files = examples .. "/../tests/data/rules/"
local s = msdbg.open(data .. "/dumps/lenet-2.7.1-lognan")

local function names(list)
  local out = {}
  for i, made in ipairs(list) do out[i] = made.name end
  table.sort(out)
  return table.concat(out, " ")
end

local function check(options)
  options.steps = options.steps or "0"
  return s:check(options)
end

describe("rule { ... }", function()
  it("names the field that is wrong and the nearest known one", function()
    expect(function() rule { name = "a", sumary = "b" } end):raises("field 'sumary' is unknown (did you mean 'summary'?)")
    expect(function() rule { name = "a", summary = "b" } end):raises "it has no condition"
    expect(function() rule { name = "a b", summary = "b", when = "max(x) > 1" } end):raises "letters, digits"
    expect(function() rule { name = "not", summary = "b", when = "max(x) > 1" } end):raises "a word of --rules"
    expect(function() rule { name = "a", summary = ("b"):rep(60), when = "max(x) > 1" } end):raises "59 is the most"
    local params = { limit = { type = "number", default = 1 } }
    expect(function() rule { name = "a", summary = "b", when = "max(x) > $limt", params = params } end)
      :raises("there is no parameter 'limt' (did you mean 'limit'?)")
    expect(function() rule { name = "a", summary = "b", when = "mx(x) > 1" } end):raises "field 'when'"
    expect(function() rule { name = "a", summary = "b", when = "max(x) > 1", check = function() end } end):raises "exclude each other"
  end)

  it("refuses a default outside of its own range", function()
    expect(function()
      rule { name = "a", summary = "b", when = "max(x) > $p", params = { p = { type = "number", default = 5, max = 4, unit = "%" } } }
    end):raises "5 is above 4 %"
  end)
end)

describe("a choice of rules", function()
  local function chosen(text) return names(msdbg.rules.list { rules = text, files = { files .. "good.lua" } }) end

  it("joins names, abbreviations, tags and globs", function()
    expect(chosen "TO, largest"):equals "largest tensor_overflow"
    expect(chosen "team"):equals "largest phases"
    expect(chosen "team and not slow"):equals "phases"
    expect(chosen "not (not team)"):equals "largest phases"
    expect(chosen "batch-norm-variance-*"):equals "batch-norm-variance-exploding batch-norm-variance-negative batch-norm-variance-zero"
    expect(chosen "to or team and slow"):equals "largest tensor_overflow"
  end)

  it("names what it does not know", function()
    expect(function() chosen "teem" end):raises "did you mean team"
    expect(function() chosen "team and" end):raises "ends where"
    expect(function() chosen "(team" end):raises "not closed"
    expect(function() chosen "team largest" end):raises "'and', 'or' or ',' is expected"
    expect(function() chosen "team and not team" end):raises "chooses no rule"
    expect(function() chosen "" end):raises "names no rule"
  end)

  it("has the seventeen conditions under their ids, with their advice", function()
    expect(#msdbg.rules.list { rules = "catalogue" }):equals(17)
    expect(msdbg.rules.get "TO".name):equals "tensor_overflow"
    expect(#msdbg.rules.get "weight_not_changed".next > 50):is_true()
  end)
end)

describe("conditions without a limit", function()
  it("are left out and named when nobody asked for them by name", function()
    local r = check { rules = "catalogue" }
    local seen = {}
    for _, problem in ipairs(r.rule_problems) do seen[problem.rule] = problem.reason end
    expect(seen.tensor_too_large):equals "needs --param tensor_too_large.NAME=VALUE with one of abs_mean_gt, max_gt, min_gt, mean_gt"
    expect(seen.tensor_overflow):equals(nil)
    expect(#r.hits >= #check { rules = "TO" }.hits):is_true()
  end)

  it("run once they have one", function()
    local r = check { rules = "catalogue", params = { "TL.max_gt=1e30" } }
    for _, problem in ipairs(r.rule_problems) do expect(problem.rule ~= "tensor_too_large"):is_true() end
  end)

  it("are an error when they were named, or when nothing else is left", function()
    expect(function() check { rules = "default or TL" } end):raises "tensor_too_large: tensor_too_large: give at least one of"
    expect(function() check { rules = "*_too_large and not *change*" } end):raises "none of the rules can run"
    expect(function() check { rules = "catalogue", params = { "TR.range_percentage_lt=5" } } end):raises "range_start_inclusive"
  end)
end)

describe("a rule without anything to look at", function()
  it("is named", function()
    local made = s:check { rules = "embedding-* or TO", steps = "0" }
    expect(#made.rule_problems > 0):is_true()
    for _, problem in ipairs(made.rule_problems) do
      expect(problem.rule):contains "embedding-"
      expect(problem.reason):equals "selector matched nothing"
    end
  end)

  it("is named when its select function finds nothing", function()
    local r = check { rules = "chooses-nothing or TO", rule_files = { files .. "chooses_nothing.lua" } }
    expect(#r.rule_problems):equals(1)
    expect(r.rule_problems[1].rule):equals "chooses-nothing"
    expect(r.rule_problems[1].reason):equals "selector matched nothing"
  end)

  it("and steps that are not there are told beside those that are", function()
    local r = s:check { rules = "TO", steps = "0,9" }
    expect(#r.rule_problems):equals(1)
    expect(r.rule_problems[1].rule):equals "*"
    expect(r.rule_problems[1].reason):equals "no step 9 (have 0-1)"
    expect(#s:check { rules = "TO", steps = "0:9" }.rule_problems):equals(0)
  end)
end)

describe("parameters", function()
  local function with(params) return check { rules = "largest", rule_files = { files .. "good.lua" }, params = params } end

  it("are checked before anything is read", function()
    expect(function() with { "largest.limt=1" } end):raises "did you mean 'limit'?"
    expect(function() with { "largest.limit=11" } end):raises "11 is above 10 V"
    expect(function() with { "largest.limit=much" } end):raises "'much' is not a number"
    expect(function() with { "largest.mode=mean" } end):raises "not one of max, min"
    expect(function() with { "phases.limit=1" } end):raises "not among those that run"
    expect(function() with { "limit=1" } end):raises "RULE.NAME=VALUE"
    expect(function() with { largest = { limit = "x" } } end):raises "not a number"
    expect(function() with { largest = 5 } end):raises "parameters of 'largest' are a table"
  end)

  it("decide", function()
    -- Log-op0 of this dump is between -7.276 and -2.644.
    expect(#with { "largest.limit=0" }.hits):equals(0)
    local hits = with { "largest.limit=-3" }.hits
    expect(#hits):equals(1)
    expect(hits[1].node):contains "Log-op0"
    expect(tonumber(hits[1].details.actual)):is_near(-2.644, 1e-3)
    expect(hits[1].advice):equals "The cause. The next step."
    expect(#with { largest = { limit = -3, mode = "min" } }.hits):equals(0)
  end)

  it("stand behind a condition's name", function()
    local r = check { rules = "TZ 50" }
    expect(#r.hits > 0):is_true()
    expect(r.hits[1].params[1].threshold):equals(50)
  end)
end)

describe("phases", function()
  it("report at the end of a step and of the run", function()
    local r = s:check { rules = "phases", rule_files = { files .. "good.lua" }, steps = "0:1" }
    expect(#r.rule_problems):equals(0)
    local ends, steps = 0, {}
    for _, hit in ipairs(r.hits) do
      expect(hit.rule):equals "phases"
      if hit.details.message then ends = ends + 1 else steps[#steps + 1] = hit.step end
    end
    expect(ends):equals(1)
    expect(table.concat(steps, ",")):equals "0,1"
  end)

  it("have the statistics of the value before", function()
    local made = rule {
      name = "grew", summary = "grew", needs = { "previous" },
      check = function(t, _, ctx) return { now = t.stats.max, before = ctx.previous.max } end,
      cases = {
        { name = "two", x = { 1, 7 }, prev = { 3, 2 }, expect = "hit" },
        { name = "one", x = { 1 }, expect = "not checked" },
      },
    }
    expect(#require "msdbg.rule_cases".test(made).failures):equals(0)
  end)

  it("skip a check where no operand has what it asks for", function()
    local function fed(session)
      local r = session:check { rules = "fed", rule_files = { files .. "fed.lua" } }
      expect(#r.rule_problems):equals(0)
      expect(#r.not_checked):equals(0)
      expect(r.coverage.tensors > 100):is_true()
      return #r.hits
    end
    expect(fed(s)):equals(26)
    expect(fed(msdbg.open(data .. "/dumps/lenet-2.7.1-ok"))):equals(0)
  end)

  it("skip a check for a count alone", function()
    expect(function() rule { name = "a", summary = "b", operand_has = "nan", check = function() end } end)
      :raises "a count is expected, not 'nan' (did you mean 'nan_count'?); there are dtype_max_count,"
    expect(function() rule { name = "a", summary = "b", operand_has = "nan_count", when = "max(x) > 1" } end):raises "belongs to rules with a 'check'"
  end)
end)

describe("a broken rule", function()
  local function reasons(file, options)
    options = options or {}
    options.rule_files, options.rule_budget = { files .. file .. ".lua" }, 0.3
    local r = check(options)
    return r.rule_problems[1] and r.rule_problems[1].reason or r.not_checked[1] and r.not_checked[1].reason, r
  end

  it("is not checked, with file and line", function()
    expect(reasons "syntax"):contains "syntax.lua:3: '}' expected"
    expect(reasons "global"):contains "global.lua:1: assignment to global 'limit'"
    expect(reasons "runtime"):contains "runtime.lua:5: attempt to perform arithmetic"
    expect(reasons "wrong_return"):contains "wrong_return.lua:4: check returned 7"
  end)

  it("names the line of the field that is wrong, and the fields there are", function()
    local unknown = reasons "unknown_field"
    expect(unknown):contains "unknown_field.lua:7: rule 'second': field 'sumary' is unknown (did you mean 'summary'?); there are abbr,"
    expect(reasons "bad_parameter"):contains "bad_parameter.lua:6: rule 'limited': parameter 'limit': field 'mni' is unknown"
    expect(reasons "no_summary"):contains "no_summary.lua:4: rule 'silent': field 'summary' is missing"
  end)

  -- The thread sanitizer delays signals until the next libc call, and compiled loops make none.
  local it_stops = os.getenv "MSDBG_SIGNALS_LATE" and function() end or it

  it_stops("is stopped when it does not come back, be it in a compiled loop below pcall", function()
    local reason, r = reasons "endless"
    expect(reason):contains "endless.lua:5: stopped after 0.3 s"
    expect(#r.not_checked):equals(r.coverage.tensors)
    expect(reasons "endless_load"):contains "endless_load.lua:1: stopped after 0.3 s"
    expect(reasons "huge"):contains "huge.lua:6: stopped"
  end)

  it_stops("is stopped when it takes more memory than it may", function()
    local core = require "msdbg.core"
    collectgarbage()
    local limit = math.ceil(collectgarbage "count" / 1024) + 40
    local before = core.rule_memory(limit)
    local ok, r = pcall(check, { rule_files = { files .. "huge.lua" }, rule_budget = 60 })
    core.rule_memory(before)
    expect(ok):is_true()
    expect(before):equals(1024)
    expect(r.not_checked[1].reason):contains(("huge.lua:6: stopped: more than %d MB are in use"):format(limit))
    -- It is not called again, and its memory is free.
    expect(#r.not_checked):equals(r.coverage.tensors)
    collectgarbage()
    expect(collectgarbage "count" / 1024 < limit):is_true()
  end)

  it("that was named by name leaves the others alone, too", function()
    local reason, r = reasons("syntax", { rules = "TO, syntax" })
    expect(reason):contains "syntax.lua:3: '}' expected"
    expect(#r.rule_problems):equals(1)
    expect(#r.hits):equals(#check { rules = "TO" }.hits)
    expect(reasons("no_summary", { rules = "silent or TO" })):contains "field 'summary' is missing"
    -- Alone there is nothing else to run.
    expect(#check { rules = "syntax", rule_files = { files .. "syntax.lua" } }.hits):equals(0)
  end)

  it("leaves the others alone", function()
    local reason, r = reasons("runtime", { rules = "runtime or TO" })
    expect(reason):contains "runtime.lua:5"
    local overflows = 0
    for _, hit in ipairs(r.hits) do
      expect(hit.rule):equals "tensor_overflow"
      overflows = overflows + 1
    end
    expect(overflows):equals(#check { rules = "TO" }.hits)
  end)
end)

describe("cases", function()
  local function failures(cases, fields)
    local params = { limit = { type = "number", default = 1 } }
    local given = { name = "c", summary = "c", when = "max(x) > $limit", params = params, cases = cases }
    for key, value in pairs(fields or {}) do given[key] = value end
    return require "msdbg.rule_cases".test(rule(given)).failures
  end

  it("tell what was expected and what came", function()
    local list = failures { { name = "wrong", x = { 0, 1 }, expect = "hit" } }
    expect(list[1].case):equals "wrong"
    expect(list[1].expected):equals "hit"
    expect(list[1].actual):equals "clean"
  end)

  it("are a duty", function() expect(failures()[1].actual):equals "the rule has none" end)

  it("take nested lists, words, types, steps and several tensors", function()
    expect(#failures {
      { x = { { 0, 1 }, { 2, 0 } }, expect = "hit" },
      { x = { "-inf", 0 }, expect = "clean" },
      { x = { 1.0001 }, dtype = "float16", expect = "clean" },
      { steps = { { x = { 0 } }, { x = { 5 } }, { x = { 6 } } }, expect = "hit", hit_steps = { 1, 2 }, hits = 2 },
      { step = function(i) return i < 4 and { x = { i } } or nil end, expect = "hit", hit_steps = { 2, 3 } },
      { tensors = { { node = "a", x = { 0 } }, { node = "b", x = { 3 } } }, expect = "hit", hits = 1 },
      { x = { 3 }, params = { limit = 4 }, expect = "clean" },
    }):equals(0)
  end)

  it("fail when they are written wrongly", function()
    expect(failures { { y = { 1 }, expect = "hit" } }[1].actual):contains "field 'y' is unknown"
    expect(failures { { x = { 1 }, expect = "hitt" } }[1].actual):contains "is expected"
    expect(failures { { x = { 1, 2, 3 }, shape = { 2 }, expect = "hit" } }[1].actual):contains "do not fill the shape"
    expect(failures { { x = { 1 }, params = { limt = 2 }, expect = "hit" } }[1].actual):contains "did you mean 'limit'?"
    expect(failures { 5 }[1].actual):contains "a case is a table"
  end)
end)

describe("a new rule", function()
  it("passes its own cases as it is", function()
    local path = os.tmpname() .. ".lua"
    local command = require "msdbg.rule_commands"
    local _, status = command.main(nil, "verb=new", "name=steep", "output=" .. path)
    expect(status):equals(0)
    local reports = require "msdbg.rule_cases".run { path }
    expect(#reports):equals(1)
    expect(reports[1].name):equals "steep"
    expect(#reports[1].failures):equals(0)
    expect(reports[1].cases > 2):is_true()
    expect(function() command.main(nil, "verb=new", "name=steep", "output=" .. path) end):raises "exists already"
    os.remove(path)
  end)
end)

describe("a watchpoint", function()
  it("can be a rule with parameters", function()
    local own = msdbg.open(data .. "/dumps/lenet-2.7.1-lognan")
    local w = own:watch { rule = "TZ", on = "op:ReLU", zero_percentage_ge = 50 }
    expect(w.rule):equals "tensor_all_zero"
    expect(#own:check { steps = "0" }.hits > 0):is_true()
    w:remove()
    msdbg.rules.load(files .. "good.lua")
    own:watch { rule = "largest", limit = -3 }
    local hits = own:check { steps = "0" }.hits
    expect(#hits):equals(1)
    expect(hits[1].rule):equals "largest"
    expect(function() own:watch { rule = "largest", limt = 1 } end):raises "did you mean 'limit'?"
    expect(function() own:watch { rule = "largset" } end):raises "did you mean 'largest'?"
    msdbg.rules.forget()
  end)
end)

describe("a rule on a training", function()
  it("is asked in every step, and told when it ends", function()
    local training, steps = msdbg.listen {}, {}
    training:watch {
      rule = rule {
        name = "nan-count", summary = "NaN", params = { limit = { type = "number", default = 5 } },
        check = function(t, p) return t.stats.nan_count > p.limit and { actual = t.stats.nan_count } end,
        step_end = function(_, _, ctx) steps[#steps + 1] = ctx.step end,
      },
      limit = 0,
    }
    local hits
    for _ = 1, 3 do hits = training:step(1).hits end
    expect(table.concat(steps, ",")):equals "0,1,2"
    expect(#hits):equals(1)
    expect(hits[1].rule):equals "nan-count"
    training:terminate()
  end)
end)

describe("a profile", function()
  local path = os.tmpname()
  local function profile(text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    return function() return check { profile = path, rule_files = { files .. "good.lua" } } end
  end

  it("chooses rules and sets parameters", function()
    expect(#profile [[return { rules = "largest", params = { largest = { limit = -3 } } }]]().hits):equals(1)
    expect(#profile [[return { rules = "largest" }]]().hits):equals(0)
  end)

  it("is checked, rule by rule", function()
    expect(profile [[return { rule = "largest" }]]):raises("did you mean 'rules'?")
    expect(profile [[return { rules = "largest", params = { largest = { limt = 1 } } }]]):raises "did you mean 'limit'?"
    expect(profile [[return { rules = "largest", params = { largst = { limit = 1 } } }]]):raises "did you mean 'largest'?"
    expect(profile [[return { collections = { a = "@weigth" } }]]):raises "@weigth"
    expect(profile [[return { params = { largest = 5 } }]]):raises "parameters of 'largest' are a table"
    expect(profile [[return 3]]):raises "it returned number"
    os.remove(path)
  end)
end)

return test.finish()
