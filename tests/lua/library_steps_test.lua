-- Statistics over steps, and msdbg.test itself.
local msdbg = require "msdbg"
local steps = require "msdbg.steps"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"
local NAN, INF = 0 / 0, 1 / 0

describe("numbers over steps", function()
  it("pass over what is not finite", function()
    local values = { 1, false, NAN, 3, INF }
    expect(steps.mean(values)):equals(2)
    expect(steps.std(values)):is_near(math.sqrt(2))
    expect(steps.median { 5, 1, NAN, 3 }):equals(3)
    expect(steps.quantile({ 1, 2, 3, 4 }, 0.25)):equals(1.75)
    expect(steps.mean {}):is_nil()
    expect(steps.quantile({ false }, 0.5)):is_nil()
    expect(steps.moving_mean({ 1, 3, false, 5 }, 2)):equals { 1, 2, 3, 5 }
    expect(steps.moving_mean({ NAN, NAN }, 1)):equals { false, false }
  end)

  it("correlate and slope as the textbook says", function()
    expect(steps.correlation({ 1, 2, 3 }, { 2, 4, 6 })):is_near(1)
    expect(steps.correlation({ 1, 2, 3, 4 }, { 1, 3, 2, 4 })):is_near(0.8)
    expect(steps.correlation({ 1, 2, 3 }, { 5, 5, 5 })):is_nil()
    expect(steps.correlation({ 1, 2 }, { 1, 2 })):is_nil()
    expect(steps.slope({ 1, 3, false, 7 })):is_near(2)
    expect(steps.slope({ 1, 2 }, { 10, 20 })):is_near(0.1)
  end)

  it("jump where the level changes", function()
    local found = steps.change_point({ 1, 1.1, 0.9, 1, 5, 5.1, 4.9 }, { steps = { 0, 1, 2, 3, 4, 5, 6 } })
    expect({ found.index, found.step }):equals { 5, 4 }
    expect(found.before):is_near(1)
    expect(found.after):is_near(5)
    expect(found.score > 20):is_true()
    expect(steps.change_point { 1, 1, 1, 2, 2 }.score):equals(INF)
  end)

  it("do not jump without a jump", function()
    expect(steps.change_point { 1, 2, 1, 2, 1, 2, 1, 2 }):is_nil()
    expect(steps.change_point { 3, 3, 3, 3 }):is_nil()
    expect(steps.change_point { 1, 9 }):is_nil()
    expect(steps.change_point { NAN, NAN, 1, 9, INF }):is_nil()
  end)
end)

describe("a series", function()
  local s = msdbg.open(data .. "lenet-2.7.1-lognan")

  it("holds a statistic of each step", function()
    local series = steps.series(s, "Log-op0:0", "neg_inf_count")
    expect(series.steps):equals { 0, 1 }
    expect(series.values):equals { 104, 88 }
    expect(tostring(series)):equals "neg_inf_count of Log-op0:0\n0: 104  1: 88"
  end)

  it("says why a step has no value", function()
    local change = steps.series(msdbg.open(data .. "lenet-2.7.1-ok"), "conv1.weight", "change")
    expect(change.values[1]):equals(false)
    expect(change.missing[1]):contains "step 0 is the first"
    expect(change.values[2]):is_near(0.0008081, 1e-3)
    expect(change.missing[2]):equals(false)
  end)

  it("takes steps, nodes and functions", function()
    local node = s:node "Log-op0"
    local series = steps.series(s, node.name .. ":0", function(t) return t.stats.count end, { steps = "1:" })
    expect(series.steps):equals { 1 }
    expect(series.values):equals { 192 }
    expect(function() steps.series(s, "Log-op0:0", "neg_inf_cuont") end):raises "did you mean 'neg_inf_count'"
    expect(function() steps.series(s, "Log-op0:0", nil, { step = 1 }) end):raises "did you mean 'steps'"
    expect(function() steps.series("s", "x") end):raises "a session is expected"
  end)
end)

describe("msdbg.test", function()
  local function message(fn)
    local _, problem = pcall(fn)
    return (tostring(problem):gsub("^.-: ", ""))
  end

  it("names every place where tables differ", function()
    expect(test.differences({ a = { 1, 2 }, b = "x" }, { a = { 1, 3, 4 }, c = true }))
      :equals ".a[2]: got 2, expected 3\n  .a[3]: missing, expected 4\n  .b: got \"x\", expected nothing\n  .c: missing, expected true"
    expect(test.differences({ NAN }, { NAN })):is_nil()
    local a, b = {}, {}
    a.self, b.self = a, b
    expect(test.differences(a, b)):is_nil()
    expect(message(function() expect(1):equals(2) end)):equals "got 1, expected 2"
    local many, none = {}, {}
    for i = 1, 20 do many[i] = i end
    expect(test.differences(many, none)):contains "and 12 more differences"
  end)

  it("compares numbers within tables by a tolerance", function()
    expect({ 1.0000000001, { x = 100 } }):is_near({ 1, { x = 101 } }, 0.02)
    expect(0.001):is_near(0, 0, 0.01)
    expect(message(function() expect({ 1 }):is_near { 2 } end)):equals "[1]: got 1, expected about 2"
    expect(message(function() expect("1"):is_near(1) end)):contains "got \"1\""
  end)

  it("compares a text with a golden file and names the first line that differs", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "wb"))
    file:write "one\ntwo\n"
    file:close()
    expect("one\ntwo\n"):is_golden(path)
    expect(message(function() expect("one\nzwei\n"):is_golden(path) end)):contains ':2: got "zwei", expected "two"'
    os.remove(path)
    expect(message(function() expect(""):is_golden(path) end)):contains "MSDBG_UPDATE_GOLDEN=1 writes it"
  end)
end)

return test.finish()
