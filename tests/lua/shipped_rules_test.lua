-- The shipped rules: their cases, their results on real trainings, good and broken, and their page.
local cases = require "msdbg.rule_cases"
local msdbg = require "msdbg"
local page = require "rules_page"
local rules = require "msdbg.rule_library"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data, examples = ...
local dumps, docs = data .. "/dumps/", examples .. "/../docs/"

local families = {
  { "activations", "Activations" }, { "gradients", "Gradients" }, { "updates", "Weights and their updates" }, { "overflow", "NaN and Inf" },
  { "calls", "Recorded calls" },
  { "precision", "Number formats" }, { "loss_scale", "Loss scale" },
  { "normalization", "Batch normalisation" }, { "training", "The run: loss, data, jumps" },
  { "learning", "Training without progress" }, { "collapse", "Values that do not depend on the sample" },
  { "parameters", "The optimizer's parameters" }, { "labels", "Labels" },
  { "embedding", "Embeddings" }, { "ranks", "Several ranks" }, { "recommended", "MindInsight's recommendations" },
}

local shipped, all = {}, {}
for i, family in ipairs(families) do
  local list = assert(rules.read("embedded:rules/" .. family[1] .. ".lua"))
  shipped[i] = { title = family[2] }
  for k, made in ipairs(list) do shipped[i][k], all[#all + 1] = made, made end
end

describe("each rule that ships", function()
  for _, made in ipairs(all) do
    it(made.name .. " keeps what its cases promise", function()
      local report = cases.test(made)
      for _, failure in ipairs(report.failures) do
        error(("case '%s': expected %s, got %s"):format(failure.case, failure.expected, failure.actual))
      end
    end)

    it(made.name .. " has a cause, a next step, a hit and a case without one", function()
      expect(made.cause and #made.cause > 20):is_true()
      expect(made.next and #made.next > 20):is_true()
      expect(#made.tags > 0):is_true()
      local seen = {}
      for _, case in ipairs(made.cases) do seen[case.expect] = true end
      expect(seen.hit and (seen.clean or seen["not checked"])):is_true()
    end)
  end

  it("is in one family only, with a name of its own", function()
    local seen = {}
    for _, made in ipairs(all) do
      expect(seen[made.name]):is_nil()
      seen[made.name] = true
    end
    expect(#all):equals(55)
  end)

  it("is found by name, by tag and by file", function()
    expect(rules.get("dead-relu").file):contains "rules/activations.lua"
    local names = {}
    for _, made in ipairs(rules.list { rules = "batch-norm" }) do names[#names + 1] = made.name end
    table.sort(names)
    expect(table.concat(names, " ")):equals "batch-norm-variance-exploding batch-norm-variance-negative batch-norm-variance-zero"
  end)
end)

local function check(name, options)
  local s = msdbg.open(dumps .. name)
  local r = s:check(options)
  for _, entry in ipairs(r.not_checked) do
    if entry.reason:find "^rule error" then error(("%s: %s: %s"):format(name, entry.rule, entry.reason)) end
  end
  return r
end

--- The first hit of each rule: rule -> "step node".
local function first_hits(r)
  local first = {}
  for _, hit in ipairs(r.hits) do
    first[hit.rule] = first[hit.rule] or ("%d %s"):format(hit.step, hit.node:match "[^/]*/[^/]*$" or hit.node)
  end
  return first
end

local healthy = {
  "control-1.5.0", "control-2.0.0", "control-2.7.1", "lenet-1.5.0-ok", "lenet-2.0.0-filter", "lenet-2.0.0-ok", "lenet-2.7.1-eval",
  "lenet-2.7.1-ok", "long-1.5.0", "long-2.0.0", "long-2.7.1", "synthetic-stat-old", "two-1.5.0", "two-2.0.0", "two-2.7.1", "types-1.5.0",
  "types-2.0.0", "types-2.7.1",
}

describe("on a healthy dump", function()
  for _, name in ipairs(healthy) do
    it(name .. " no default rule hits", function()
      local r = check(name, { rules = "default" })
      expect(r.hits[1] and tostring(r.hits[1])):is_nil()
      expect(r.coverage.checked > 0):is_true()
    end)
  end

  it("with all elements the default rules reach a verdict on every tensor", function()
    expect(#check("lenet-2.7.1-ok", { rules = "default" }).not_checked):equals(0)
    expect(#check("lenet-1.5.0-ok", { rules = "default" }).not_checked):equals(0)
  end)

  it("statistics without elements leave rules on change not checked, and say so", function()
    local r, seen = check("synthetic-stat-old", { rules = "unchanged-weight" }), {}
    for _, entry in ipairs(r.not_checked) do seen[entry.reason:match "^no tensor data" or entry.reason] = true end
    expect(#r.not_checked > 0):is_true()
    expect(seen):equals { ["no tensor data"] = true }
  end)
end)

local trainings = data .. "/trainings/"

local function check_training(name, options) return check("../trainings/" .. name, options or { rules = "default" }) end

describe("on a healthy training", function()
  for _, name in ipairs { "twelve", "every50", "resnet", "gan", "bert", "schedule", "groups", "frozen", "half-ok" } do
    it(name .. " no default rule hits", function()
      local r = check_training(name)
      expect(r.hits[1] and tostring(r.hits[1])):is_nil()
    end)
  end
end)

describe("mixed precision", function()
  it("overflows that the loss scale answered are no findings, and can be listed", function()
    local r = check_training("half-ok", { rules = "loss-scale-skip" })
    expect(#r.hits):equals(1)
    expect(r.hits[1].details.message):contains "in 6 of 8 dumped steps"
    expect(#check_training("half-ok", { rules = "nan-or-inf" }).hits > 50):is_true()
  end)

  it("a fault of the forward pass is still one", function()
    expect(first_hits(check_training "half-log")["tensor_overflow"]):equals "0 net-HalfMLP/Log-op0"
  end)

  it("a scale that overflows in each step is one finding", function()
    local r = check_training "half-every"
    expect(first_hits(r)["loss-scale-stuck"]):contains "2 scale_value"
    expect(#r.hits):equals(1)
  end)

  it("the zeros of a ReLU do not hide subnormal values", function()
    expect(first_hits(check_training "half-small")["float16-subnormal"]):contains "0 "
  end)
end)

describe("fused operators", function()
  it("count as the ReLU that they hold", function()
    expect(first_hits(check_training "dead")["dead-relu"]):contains "MatMulBiasAddReluFusion-op"
    local s = msdbg.open(trainings .. "dead")
    expect(#s:nodes "@activation" > 0):is_true()
  end)
end)

describe("vanishing gradients", function()
  it("are found by their fall from layer to layer", function()
    local r = check_training "sigmoid"
    expect(#r.hits):equals(1)
    expect(r.hits[1].rule):equals "vanishing-by-depth"
    expect(r.hits[1].details.message):contains "gradient of layers.0.weight is"
  end)
end)

describe("a training that does not learn", function()
  it("is told where a softmax stands before the loss and over the batch", function()
    local hits = first_hits(check_training "axis")
    expect(hits["softmax-axis"]):contains "0 _backbone-MLP/Softmax-op0"
    expect(hits["softmax-before-loss"]):contains "SparseSoftmaxCrossEntropyWithLogits-op0"
  end)

  it("is told where an activation is missing, as a hint that is no default rule", function()
    expect(first_hits(check_training("noact", { rules = "learning" }))["linear-layers-in-a-row"]):contains "0 1-Dense/MatMul-op0"
    expect(#check_training "noact".hits):equals(0)
  end)

  it("is told from which layer on all samples look the same", function()
    expect(first_hits(check_training("sigmoid", { rules = "learning" }))["collapsed-layer"]):contains "1 "
  end)

  it("is told where dead units make all outputs equal", function()
    expect(first_hits(check_training "dead")["equal-outputs"]):contains "1 "
  end)

  for _, name in ipairs {
    "twelve", "every50", "resnet", "gan", "bert", "schedule", "groups", "frozen", "half-ok", "../dumps/lenet-2.7.1-ok",
    "../dumps/lenet-2.0.0-ok", "../dumps/lenet-1.5.0-ok",
  } do
    it("no rule has a hint for " .. name, function()
      local r = check_training(name, { rules = "learning" })
      expect(r.hits[1] and tostring(r.hits[1])):is_nil()
    end)
  end
end)

-- Trainings of MindSpore 2.10, made by trainings/more.py.
describe("healthy trainings that look odd", function()
  for _, name in ipairs { "halved", "masked", "adapter", "paired" } do
    it("have no finding: " .. name, function()
      local r = check_training(name)
      expect(r.hits[1] and tostring(r.hits[1])):is_nil()
    end)
  end

  it("half precision that was computed in float32 is read as float32", function()
    local t = msdbg.open(trainings .. "halved"):tensor("Default/MatMul-op0:output:0", { step = 0 })
    expect(t.dtype):equals "float32"
    expect(t.stats.nan_count):equals(0)
    expect(t.note):contains "four bytes for each element"
  end)
end)

describe("the optimizer's parameters", function()
  it("are those of another network", function()
    expect(first_hits(check_training "othernet")["optimizer-without-use"]):equals "0 other.fc1.weight"
  end)

  it("are a part of them, as a hint", function()
    local hits = check_training("partial", { rules = "learning" }).hits
    expect(#hits):equals(1)
    expect(hits[1].details.message):equals "fc2.weight, fc2.bias: behind fc1.weight, which is trained; fine if frozen on purpose"
  end)

  it("do not move at a rate far too low, though they have gradients", function()
    expect(check_training("rate1e9").hits[1].details.message):contains "its gradient is not zero"
  end)
end)

describe("labels", function()
  it("that were shuffled do not go with the samples", function()
    expect(first_hits(check_training("shuffled", { rules = "learning" }))["labels-independent"]):contains "4 inputs1"
    expect(first_hits(check_training("paired", { rules = "learning" }))["labels-independent"]):is_nil()
  end)

  it("are picked by hand from a softmax over the batch", function()
    expect(first_hits(check_training "gather")["softmax-axis"]):equals "0 Default/Softmax-op0"
  end)
end)

describe("all findings follow from one cause:", function()
  local function causes(name)
    local words = {}
    for i, cause in ipairs(check_training(name).causes) do words[i] = cause.kind .. " " .. cause.node .. " " .. cause.step end
    return table.concat(words, ", ")
  end
  it("a weight that was NaN, whatever the updates made of the others", function()
    expect(causes "nanweight"):equals "bad_parameter fc2.weight 0"
  end)
  it("a learning rate that is too large from the first update on", function()
    expect(causes "rate50"):equals "rate_too_large learning_rate 0"
  end)
  it("a batch far from those before", function() expect(causes "farbatch"):equals "bad_input inputs0 2" end)
end)

describe("updates between two values", function()
  it("do not count steps in which another graph ran", function()
    local training = require "msdbg.training"
    local s = msdbg.open(data .. "/dumps/two-2.0.0")
    local node = s:nodes("op:MatMul")[1]
    local before, now = node:output(0, { step = 0 }), node:output(0, { step = 2 })
    expect(training.updates_between(s)(now, before)):equals(1)
  end)
end)

describe("outputs that an optimizer never wrote", function()
  it("are known by operator, release and device, and not judged", function()
    local s = msdbg.open(trainings .. "every50")
    expect(s:nodes("op:Adam")[1].unwritten):equals(true)
    expect(s:nodes("op:MatMul")[1].unwritten):equals(false)
    local seen = false
    for _, hit in ipairs(check_training("every50", { rules = "tensor_overflow, nan-or-inf, dtype-saturation" }).hits) do
      seen = seen or hit.node:find "Adam" ~= nil
    end
    expect(seen):equals(false)
    -- Two trainings with the same weights do not differ in them.
    local diff = msdbg.diff(s, msdbg.open(trainings .. "every50"))
    local reasons = 0
    for _, entry in ipairs(diff.tensors) do
      if (entry.reason or ""):find "uninitialised memory" then reasons = reasons + 1 end
    end
    expect(reasons > 0):is_true()
  end)
end)

describe("rules with a history", function()
  it("look at the steps before those that were chosen", function()
    for _, name in ipairs { "loss-explosion", "exploding-gradient", "zero-gradient", "unchanged-weight" } do
      for _, dump in ipairs { "lenet-2.7.1-explode", "lenet-2.7.1-lognan" } do
        for _, hit in ipairs(check(dump, { rules = name }).hits) do
          local again = check(dump, { rules = name, steps = tostring(hit.step) })
          local seen = false
          for _, other in ipairs(again.hits) do seen = seen or other.node == hit.node and other.step == hit.step end
          if not seen then error(("%s on %s: step %d alone does not hit %s"):format(name, dump, hit.step, hit.node)) end
        end
      end
    end
  end)
end)

describe("on a learning rate that is far too high", function()
  local hits = first_hits(check("lenet-2.7.1-explode", { rules = "default" }))

  it("the update is named one step before the gradients", function()
    expect(hits["update-too-large"]):equals "0 fc3.weight"
    expect(hits["exploding-gradient"]:match "^%d+"):equals "2"
  end)

  it("the loss is named in the step in which it explodes, before it is infinite", function()
    expect(hits["loss-explosion"]):contains "1 _loss_fn-SoftmaxCrossEntropyWithLogits/"
    expect(hits["tensor_overflow"]:match "^%d+"):equals "2"
  end)

  it("the jump of each weight is told once, in its first step", function()
    local r = check("lenet-2.7.1-explode", { rules = "value-jump" })
    local seen = {}
    for _, hit in ipairs(r.hits) do
      expect(seen[hit.node]):is_nil()
      seen[hit.node] = hit.step
    end
    expect(seen["conv1.weight"]):equals(2)
    expect(seen["conv2.weight"]):equals(2)
    expect(seen["fc3.weight"]):equals(3)
  end)

  it("a limit that was given decides", function()
    expect(#check("lenet-2.7.1-explode", { rules = "update-too-large", params = { "update-too-large.limit=1e12" } }).hits):equals(0)
    expect(#check("lenet-2.7.1-explode", { rules = "loss-explosion", params = { "loss-explosion.factor=14" } }).hits):equals(0)
    expect(#check("lenet-2.7.1-explode", { rules = "loss-explosion", params = { "loss-explosion.factor=13" } }).hits):equals(1)
  end)
end)

describe("on the logarithm of zero behind healthy losses", function()
  local hits = first_hits(check("lenet-2.7.1-lognan", { rules = "default" }))

  it("the ReLU that turns NaN into zero is named", function()
    expect(hits["nan-swallowed"]):equals "0 relu4-ReLU/ReLU-op0"
    expect(hits["dead-relu"]):equals "0 relu4-ReLU/ReLU-op0"
  end)

  it("so is the weight that no gradient reaches and that does not move", function()
    expect(hits["unchanged-weight"]):equals "1 fc3.weight"
    expect(hits["zero-gradient"]:match "^%d+"):equals "1"
  end)

  it("the loss gives no hint", function()
    expect(hits["loss-explosion"]):is_nil()
    expect(hits["loss-not-decreasing"]):is_nil()
  end)
end)

describe("statistics without elements", function()
  it("still tell the overflow", function()
    local hits = first_hits(check("synthetic-stat-new", { rules = "default" }))
    expect(hits["tensor_overflow"]:match "^%d+"):equals "0"
  end)
end)

describe("the recommended rules", function()
  local function places(r)
    local list = {}
    for i, hit in ipairs(r.hits) do list[i] = ("%d %d %s %s"):format(hit.graph_id, hit.step, hit.node, hit.slot) end
    table.sort(list)
    return list
  end

  local names = {
    "control-2.7.1", "lenet-2.0.0-filter", "lenet-2.7.1-eval", "lenet-2.7.1-explode", "lenet-2.7.1-lognan", "lenet-2.7.1-ok",
  }
  for _, name in ipairs(names) do
    it("find in " .. name .. " what the recommended watchpoints find", function()
      local s = msdbg.open(dumps .. name)
      expect(tostring(s:watch_recommended()):find "^table:"):is_nil()
      local wanted, got = s:check(), check(name, { rules = "recommended" })
      expect(places(got)):equals(places(wanted))
      expect(#got.not_checked):equals(#wanted.not_checked)
    end)
  end
end)

describe("docs/rules-shipped.md", function()
  it("says what the rule files say", function()
    local path, text = docs .. "rules-shipped.md", page.markdown(shipped)
    if os.getenv "MSDBG_UPDATE_GOLDEN" then
      local out = assert(io.open(path, "w"))
      out:write(text)
      out:close()
    end
    local file = assert(io.open(path, "r"))
    local have = file:read "*a"
    file:close()
    expect(have):equals(text)
  end)
end)

return test.finish()
