-- The guide on real dumps: what it finds, what it leaves open, what it asks.
local guide = require "msdbg.guide"
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"

local function run(name, options)
  local lines = {}
  options = options or {}
  options.say = function(line) lines[#lines + 1] = line end
  local result = guide.run(msdbg.open(data .. name), options)
  return result, table.concat(lines, "\n")
end

local function of_kind(result, kind)
  local texts = {}
  for _, e in ipairs(result.entries) do
    if e.kind == kind then texts[#texts + 1] = e.chapter .. ": " .. e.text end
  end
  return table.concat(texts, "\n")
end

describe("the guide", function()
  it("finds nothing in a healthy run, and asks about the processing alone", function()
    local result, text = run "lenet-2.7.1-ok"
    expect(result.findings):equals(0)
    expect(result.unknowns):equals(1)
    expect(of_kind(result, "unknown")):contains "nobody was asked, taken as not known: whether the processing of the data agrees with the reference"
    expect(of_kind(result, "fine")):contains "2 data inputs over 3 steps: finite, varied, each batch new"
    expect(of_kind(result, "fine")):contains "loss over steps 0 to 2: 2.306, 2.3026, 2.3133"
    expect(of_kind(result, "note")):contains "learning_rate = 0.05"
    expect(text):contains "nothing wrong in what could be looked at; 1 question is open"
  end)

  it("begins with the operator that broke, and does not blame the initial weights for it", function()
    local result = run "lenet-2.7.1-lognan"
    expect(guide.verdict(result)):contains "Begin with: first NaN or Inf: _backbone-LeNet5/Log-op0:output:0 in step 0, 104 of its values"
    expect(of_kind(result, "finding")):contains "trained parameters never change: fc3.weight, fc2.bias"
    expect(of_kind(result, "finding")):contains "relu4-ReLU/ReLU-op0 (100 % in step 0)"
    expect(of_kind(result, "unknown")):contains "Initial weights: the first dumped weights are those after step 0"
  end)

  it("begins with the learning rate where weights grow before anything breaks", function()
    local result = run "lenet-2.7.1-explode"
    expect(guide.verdict(result)):contains "Begin with: weights change by more than 10 %"
    expect(of_kind(result, "note")):contains "learning_rate = 30"
    expect(of_kind(result, "finding")):contains "it is nan in step 4"
  end)

  it("says in one short line where to begin", function()
    for _, name in ipairs { "lenet-2.7.1-lognan", "lenet-2.7.1-explode" } do
      local result, text = run(name)
      expect(#guide.verdict(result) <= 150):equals(true)
      expect(guide.verdict(result)):contains "Begin with: "
      -- Nobody is there to answer, so nothing is asked.
      expect(text:find("?\n", 1, true)):equals(nil)
    end
  end)

  it("sees a batch that comes twice", function()
    expect(of_kind(run "lenet-2.7.1-eval", "finding")):contains "data is the same as in the step before: step 2"
  end)

  it("takes answers, typed or given, as findings or as settled", function()
    local typed = run("lenet-2.7.1-ok", { read = function() return "n" end })
    expect(typed.findings):equals(1)
    expect(of_kind(typed, "finding")):contains "Were augmentation"
    local given = run("lenet-2.7.1-ok", { answers = { processing = true } })
    expect({ given.findings, given.unknowns }):equals { 0, 0 }
    local silent = run("lenet-2.7.1-ok", { read = function() return nil end })
    expect(silent.unknowns):equals(1)
  end)

  it("says what was not dumped instead of calling it sound", function()
    local result = run "control-2.0.0"
    expect(result.findings):equals(0)
    expect(of_kind(result, "unknown")):contains "10 data inputs were never dumped"
    expect(of_kind(result, "unknown")):contains "no weight of step 0 was dumped"
  end)

  it("refuses an option that it does not have", function()
    local s = msdbg.open(data .. "lenet-2.7.1-ok")
    expect(function() guide.run(s, { awnsers = {} }) end):raises "did you mean 'answers'"
  end)
end)

test.finish()
