-- The guide on real dumps: what it finds, what it leaves open, what it asks.
local guide = require "msdbg.guide"
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local root = ...
local data = root .. "/dumps/"

local function run_on(path, options)
  local lines = {}
  options = options or {}
  options.say = function(line) lines[#lines + 1] = line end
  local result = guide.run(msdbg.open(path), options)
  return result, table.concat(lines, "\n")
end
local function run(name, options) return run_on(data .. name, options) end
-- Dumps of small trainings, made with MindSpore 2.7.1 (dead: 2.0.0) by trainings/train.py.
local function training(name) return run_on(root .. "/trainings/" .. name) end

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
    expect(of_kind(result, "unknown")):contains "not asked, treated as unknown: whether the processing of the data agrees with the reference"
    expect(of_kind(result, "fine")):contains "2 data inputs over 3 steps: finite, varied, each batch new"
    expect(of_kind(result, "fine")):contains "loss over steps 0 to 2: 2.306, 2.3026, 2.3133"
    expect(of_kind(result, "note")):contains "learning_rate = 0.05"
    expect(text):contains "nothing wrong in what could be checked; 1 question is open"
  end)

  it("begins with the operator that broke, and does not blame the initial weights for it", function()
    local result = run "lenet-2.7.1-lognan"
    expect(result.verdict):contains "Begin with: Log-op0, steps 0-1, train.py:70: logarithm of 0; 104 zeros in input:0"
    expect(result.findings):equals(1)
    for _, text in ipairs {
      "trained parameters never change: fc3.weight, fc2.bias; fc3.weight follows from Log-op0",
      "a ReLU lets nothing through: relu4-ReLU/ReLU-op0 in step 0; follows from Log-op0",
      "follows from Log-op0, steps 0-1, train.py:70: logarithm of 0",
    } do
      expect(of_kind(result, "note")):contains(text)
    end
    expect(of_kind(result, "fine")):contains "weights before step 0: finite, not constant, moderate"
  end)

  it("begins with the learning rate where weights grow before anything breaks", function()
    local result = run "lenet-2.7.1-explode"
    expect(result.verdict):contains "Begin with: learning_rate, step 0: the learning rate 30 is too large"
    expect(result.findings):equals(1)
    expect(of_kind(result, "note")):contains "learning_rate = 30"
    expect(of_kind(result, "note")):contains "it is nan in step 4 and follows from learning_rate"
  end)

  it("says in one short line where to begin", function()
    for _, name in ipairs { "lenet-2.7.1-lognan", "lenet-2.7.1-explode" } do
      local result, text = run(name)
      expect(#result.verdict <= 150):equals(true)
      expect(result.verdict):contains "Begin with: "
      -- Nobody can answer: nothing is asked.
      expect(text:find("?\n", 1, true)):equals(nil)
    end
  end)

  it("sees a batch that comes twice; where nothing is trained it is no fault", function()
    local found = of_kind(training "samebatch", "finding")
    expect(found):contains "inputs0 is the same as in the step before: steps 1 and 2"
    local evaluation = run "lenet-2.7.1-eval"
    expect(evaluation.findings):equals(0)
    expect(of_kind(evaluation, "note")):contains "data is the same as in the step before: step 2"
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
    expect(of_kind(result, "unknown")):contains "a data input was never dumped: n"
    expect(of_kind(result, "unknown")):contains "no weight of step 0 was dumped"
  end)

  it("refuses an option that it does not have", function()
    local s = msdbg.open(data .. "lenet-2.7.1-ok")
    expect(function() guide.run(s, { awnsers = {} }) end):raises "did you mean 'answers'"
  end)
end)

describe("on a healthy training the guide finds nothing:", function()
  for _, name in ipairs {
    "twelve", "every50", "resnet", "gan", "bert", "schedule", "groups", "frozen", "half-ok", "halved", "masked", "adapter", "paired",
  } do
    it(name, function() expect(of_kind(training(name), "finding")):equals "" end)
  end
  for _, name in ipairs {
    "control-1.5.0", "control-2.7.1", "lenet-1.5.0-ok", "lenet-2.0.0-filter", "lenet-2.0.0-ok", "lenet-2.7.1-eval", "long-1.5.0", "long-2.0.0",
    "long-2.7.1", "synthetic-stat-old", "two-1.5.0", "two-2.0.0", "two-2.7.1", "types-1.5.0", "types-2.0.0", "types-2.7.1",
  } do
    it(name, function() expect(of_kind(run(name), "finding")):equals "" end)
  end
end)

describe("the guide begins with", function()
  local begins = {
    nanweight = "weights before step 0 look wrong: fc2.weight holds NaN or Inf",
    farbatch = "inputs0 leaves its range in step 2",
    othernet = "the optimizer has a weight that the network does not use: other.fc1.weight",
    rate50 = "learning_rate, step 0: the learning rate 50 is too large",
    rate1e9 = "weights hardly change, in 3 updates by less than 1e-06 of their size",
    gather = "a softmax runs over the batch, not over the classes: Default/Softmax-op0",
  }
  for name, text in pairs(begins) do
    it("the fault of " .. name, function() expect((training(name)).verdict):contains("Begin with: " .. text) end)
  end

  it("a broken weight alone, not those that the updates broke", function()
    local found = of_kind(training "nanweight", "finding")
    expect(found):contains "fc2.weight, step 0: it already held 48 NaN"
    expect(found:find("fc1.weight", 1, true)):equals(nil)
  end)
end)

describe("what the guide compares", function()
  it("are steps that follow each other, not those around the gap", function()
    local result = training "twelve"
    expect(result.steps):equals { 0, 1, 2, 3, 8, 9, 10, 11 }
    -- Two matrices, six pairs; there are five updates between steps 3 and 8.
    expect(of_kind(result, "fine")):contains "12 updates of weights, each by 0.03 to 0.12 of its size"
  end)

  it("is counted by updates where steps between were not dumped", function()
    expect(of_kind(training "every50", "fine")):contains "per step (up to 50 steps lie between two dumped ones)"
    expect(of_kind(training "every50", "fine")):contains "whether each batch is new is not known"
  end)

  it("is each weight once, and each optimizer's setting", function()
    local result = training "gan"
    expect(of_kind(result, "fine")):contains "all 8 trained parameters change"
    expect(of_kind(result, "note"):find("moment", 1, true)):equals(nil)
    expect(of_kind(training "groups", "note")):contains "learning_rate_group_0 = 0.05"
    expect(of_kind(training "groups", "note")):contains "learning_rate_group_1 = 0.1"
    expect(of_kind(training "schedule", "note")):contains "learning_rate is a schedule of 1010 values, 0.005 to 0.05"
  end)
end)

describe("what the guide takes for data", function()
  it("are the inputs alone: no moving averages, frozen weights or loss scale", function()
    expect(of_kind(training "resnet", "fine")):contains "Data: 2 data inputs over 3 steps"
    expect(of_kind(training "frozen", "fine")):contains "Data: 2 data inputs over 3 steps"
    expect(of_kind(training "frozen", "note")):contains "2 parameters that no optimizer updates: layers.0.bias, layers.0.weight"
    expect(of_kind(training "half-ok", "fine")):contains "Data: 2 data inputs over 8 steps"
  end)
end)

describe("the guide names", function()
  it("a learning rate of zero, and calls no update a fine one", function()
    local result = training "rate0"
    expect(of_kind(result, "finding")):equals "Hyper-parameters and loss: learning_rate is 0: nothing is learnt"
    expect(of_kind(result, "note")):contains "4 updates of weights, all of them zero"
  end)

  it("a ReLU that is zero though it is fused with its layer", function()
    local found = of_kind(training "dead", "finding")
    expect(found):contains "a ReLU lets nothing through: "
    expect(found):contains "MatMulBiasAddReluFusion-op"
  end)

  it("gradients that vanish on their way, and no lower learning rate against it", function()
    local result, text = training "sigmoid"
    expect(of_kind(result, "finding")):contains "gradients fall layer by layer towards the input"
    expect(text:find("lower the learning rate", 1, true)):equals(nil)
  end)

  it("a softmax over the batch, and hints as facts", function()
    expect(of_kind(training "axis", "finding")):contains "a softmax runs over the batch, not over the classes"
    local result = training "noact"
    expect(result.findings):equals(0)
    expect(of_kind(result, "note")):contains "two linear layers with no activation between them"
  end)

  it("updates that a loss scale left out, as a note", function()
    local notes = of_kind(training "half-ok", "note")
    expect(notes):contains "gradients overflowed in steps 0, 1, 2, 3 and 2 more: the update was left out and the loss scale lowered"
    expect(notes):contains "in step 0 from 4.1943e+06 to 2.09715e+06"
  end)

  it("a loss scale that overflows in each step", function()
    local result = training "half-every"
    expect(of_kind(result, "finding")):contains "gradients overflow in every step, nothing is learnt: scale_value in step 2"
    expect(result.findings):equals(1)
  end)

  it("a fault of the forward pass though a loss scale is there", function()
    expect(of_kind(training "half-log", "finding")):contains "Log-op0, steps 0-1, train.py:80: logarithm of 0"
  end)
end)

test.finish()
