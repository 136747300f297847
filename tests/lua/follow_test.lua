-- msdbg.bisect, trend, propagation, why and source on the real dumps.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"
local function open(name) return msdbg.open(data .. name) end

describe("bisect", function()
  it("finds the step in which the weights of the exploding run are lost", function()
    local s = open "lenet-2.7.1-explode"
    local found = msdbg.bisect(s, { on = "conv1.weight", when = "nan" })
    expect(found.first):equals(4)
    expect(found.last_before):equals(3)
    expect(found.monotone):equals(true)
    expect(tostring(found)):contains "first in step 4"
    expect(s:bisect({ on = s:node "conv1.weight", when = "nan" }).first):equals(4)
    expect(s:bisect({ on = s:tensor("conv1.weight", { step = 0 }), when = "nan" }).first):equals(4)
  end)

  it("takes a function, and says nowhere when it never holds", function()
    local s = open "lenet-2.7.1-explode"
    expect(s:bisect({ on = "conv1.weight", when = function(t) return t.stats.max and t.stats.max > 50 end }).first):equals(2)
    local none = open("lenet-2.7.1-ok"):bisect { on = "@weight" }
    expect(none.first):equals(nil)
    expect(tostring(none)):contains "in none of the steps"
  end)

  it("refuses what it does not know", function()
    local s = open "lenet-2.7.1-ok"
    expect(function() s:bisect { on = "conv1.weight", wehn = "nan" } end):raises "when"
    expect(function() s:bisect { when = "nan" } end):raises "option 'on'"
  end)

  it("ends at the first error of a function", function()
    local s = open "lenet-2.7.1-explode"
    local calls = 0
    local function broken(t)
      calls = calls + 1
      return t.stats.nonsense.more
    end
    expect(function() s:bisect { on = "@all", when = broken } end):raises "bisect: option 'when' on"
    expect(calls):equals(1)
    expect(function() msdbg.origin(s, { when = broken }) end):raises "origin: option 'when' on"
    expect(calls):equals(2)
    expect(function() s:propagation("conv1.weight", { step = 4, when = broken }) end):raises "propagation: option 'when' on"
    expect(calls):equals(3)
    -- A function that cannot decide is called again for the next step.
    local unsure = s:bisect { on = "conv1.weight", when = function() return { not_checked = "no idea" } end }
    expect(unsure.first):equals(nil)
  end)

  it("does not take NaN for a no", function()
    local found = open("lenet-2.7.1-explode"):bisect { on = "conv1.weight", when = "max(abs(x)) > 1e30" }
    expect(found.first):equals(nil)
    expect(found.ranks[1].skipped[1]):equals(4)
  end)
end)

describe("trend", function()
  it("gives the values of every step as numbers", function()
    local t = msdbg.trend(open "lenet-2.7.1-explode", "abs_mean", "conv1.weight")
    expect(#t.tensors):equals(1)
    local line = t.tensors[1]
    expect(line.node):equals "conv1.weight"
    expect(#line.points):equals(5)
    expect(line.points[3].value > 104 and line.points[3].value < 106):equals(true)
    expect(line.points[5].value):equals(nil)
    expect(line.ends):equals(4)
    expect(t:csv()):contains "every element is NaN"
  end)

  it("names the nearest statistic", function()
    expect(function() open("lenet-2.7.1-ok"):trend("abs_men", "@weight") end):raises "abs_mean"
  end)
end)

describe("replicas", function()
  it("names the odd rank, the element and its bit", function()
    local found = open("ranks-2.7.1-flip"):replicas()
    expect(#found.differences):equals(1)
    local difference = found.differences[1]
    expect(difference.node):equals("fc1.weight")
    expect(difference.odd_ranks[1]):equals(1)
    expect(difference.bits[1]):equals(24)
    expect(difference.single_flip):equals(true)
    expect(difference.first_operator):contains "fc1-Dense/MatMul-op0"
    expect(tostring(found)):contains "a single flipped bit"
    expect(found:csv()):contains "fc1.weight"
  end)

  it("takes steps and ranks", function()
    local s = open "ranks-2.7.1-flip"
    expect(#s:replicas({ steps = 0 }).differences):equals(0)
    expect(#s:replicas({ ranks = { 0, 2, 3 } }).differences):equals(0)
    expect(s:replicas({ ranks = 1 }).nothing):equals("rank 1 is the only one")
  end)
end)

describe("layers", function()
  it("of an optimizer inside a condition have the values that another graph dumped", function()
    local rows = msdbg.open(data .. "../trainings/halved"):layers().layers
    expect(#rows):equals(4)
    for _, row in ipairs(rows) do expect(row.weight > 0):equals(true) end
  end)

  it("agrees with the statistics of the parameters and gradients that it names", function()
    local s = open "lenet-2.7.1-ok"
    local found = s:layers()
    expect(#found.layers):equals(8)
    expect(found.layers[1].name):equals("conv1.weight")
    expect(#found.frozen):equals(0)
    for _, row in ipairs(found.layers) do
      local weight = assert(s:node(row.name):value { step = row.step })
      expect(row.weight):equals(weight.stats.abs_mean)
      expect(row.elements):equals(weight.size)
      local node, slot = s:node(row.name):gradient()
      expect(node.name):equals(row.gradient_node)
      expect(slot):equals(row.gradient_slot)
      expect(node:parameter().name):equals(row.name)
      local gradient = assert(node:output(tonumber(slot:match "%d+"), { step = row.step }))
      expect(row.gradient):equals(gradient.stats.abs_mean)
      expect(row.gradient_zero_percentage):equals(gradient.stats.zero_percentage)
      expect(row.update):equals(weight:change_ratio(weight:previous()))
      expect(row.updates):equals(1)
      expect(row.source.file):contains "train.py"
    end
  end)

  it("name weights in the order in which the forward pass uses them", function()
    local s = open "lenet-2.7.1-ok"
    local conv, place = s:node("conv1.weight"):first_use()
    local dense, later = s:node("fc1.weight"):first_use()
    expect(conv.op):equals("Conv2D")
    expect(dense.op):equals("MatMul")
    expect(place < later):equals(true)
    -- Only the optimizer takes it.
    expect(s:node("moments.fc1.weight"):first_use()):equals(nil)
    expect(conv.key):equals(s:node(conv.name).key)
    local seen = {}
    for node in s:nodes():each() do
      expect(seen[node.key]):equals(nil)
      seen[node.key] = true
    end
    local ranks = open "ranks-2.7.1-ok"
    expect(ranks:node("conv1.weight", { rank = 0 }).key ~= ranks:node("conv1.weight", { rank = 1 }).key):equals(true)
  end)

  it("shows the last finite values of a training that broke, and since when", function()
    local s = open "lenet-2.7.1-explode"
    for _, row in ipairs(s:layers().layers) do
      expect(row.first_bad):equals(4)
      expect(row.step):equals(4)
      expect(row.weight):equals(s:node(row.name):value({ step = 3 }).stats.abs_mean)
    end
    expect(tostring(s:layers())):contains "step 4"
  end)

  it("sums up the parameters of a layer", function()
    local s = open "lenet-2.7.1-ok"
    local rows = s:layers { by_layer = true, on = "fc1", steps = 1 }.layers
    expect(#rows):equals(1)
    expect(rows[1].name):equals("fc1")
    expect(rows[1].elements):equals(7200 + 48)
    local weight, bias = s:tensor("fc1.weight", { step = 1 }).stats, s:tensor("fc1.bias", { step = 1 }).stats
    expect(math.abs(rows[1].weight - (weight.abs_mean * 7200 + bias.abs_mean * 48) / 7248) < 1e-12):equals(true)
  end)

  it("says why there is nothing to show", function()
    expect(function() open("two-2.7.1"):layers() end):raises "no parameter that an optimizer updates"
    expect(function() open("long-2.7.1"):layers() end):raises "no optimizer updates any of the 2 weights"
    expect(function() open("lenet-2.7.1-ok"):layers { on = "relu" } end):raises "no trained parameter matches"
    expect(function() open("lenet-2.7.1-ok"):layers { steps = 99 } end):raises "no step 99"
    expect(function() open("lenet-2.7.1-ok"):layers { on = "fc7.weight" } end):raises "fc1.weight"
    expect(function() open("lenet-2.7.1-ok"):layers { by = 1 } end):raises "by_layer"
  end)
end)

describe("repro", function()
  local function bundle_of(dump, name, given)
    local directory = os.tmpname()
    os.remove(directory)
    local made = open(dump):repro(name, directory, given)
    local function read(file)
      local handle = assert(io.open(directory .. "/" .. file, "rb"))
      local text = handle:read "*a"
      handle:close()
      return text
    end
    return made, read, directory
  end
  local function remove(made)
    for _, list in ipairs { made.inputs, made.outputs } do
      for _, entry in ipairs(list) do if entry.file then os.remove(made.directory .. "/" .. entry.file) end end
    end
    os.remove(made.directory .. "/node.json")
    os.remove(made.directory .. "/repro.py")
    expect(os.remove(made.directory)):is_true()  -- nothing else was in it
  end

  it("writes the values of an operator and a program that computes it", function()
    local made, read = bundle_of("lenet-2.7.1-lognan", "Log-op0", { step = 0 })
    local node = require("msdbg.json").decode(read "node.json")
    expect(node.op):equals "Log"
    expect(node.inputs[1].file):equals "input_0.npy"
    expect(node.inputs[1].shape):equals { 4, 48 }
    expect(node.outputs[1].dtype):equals "float32"
    expect(node.source.line):equals(70)
    expect(node.attributes.base):equals "-1"
    expect(read "input_0.npy"):contains "NUMPY"
    expect(read "repro.py"):contains "return np.log(x[0])"
    expect(tostring(made)):contains "repro.py"
    remove(made)
  end)

  it("takes constants from the graph and parameters from the step before", function()
    local made, read = bundle_of("lenet-2.7.1-ok", "fc1-Dense/MatMul-op0", { step = 1 })
    expect(made.inputs[3].constant or made.inputs[3].file):is_true()
    expect(made.inputs[2].file):equals "input_1.npy"
    expect(read "repro.py"):contains "return matmul(x)"
    remove(made)
    made, read = bundle_of("lenet-2.7.1-ok", "ApplyMomentum-op3", { step = 1 })
    expect(made.inputs[1].note):contains "step 0"
    expect(read "repro.py"):contains "return apply_momentum"
    remove(made)
    made, read = bundle_of("lenet-2.7.1-ok", "conv1-Conv2d/Conv2D-op0")
    expect(read "repro.py"):contains "NumPy alone cannot compute"
    expect(tostring(made)):contains "repro.py mindspore"
    remove(made)
  end)

  it("refuses what does not run and what would overwrite, and leaves nothing behind", function()
    local s = open "lenet-2.7.1-ok"
    expect(function() s:repro("fc1.weight", os.tmpname() .. "x") end):raises "only operators run"
    local file = os.tmpname()
    expect(function() s:repro("fc1-Dense/MatMul-op0", file) end):raises "not an empty directory"
    os.remove(file)
    expect(function() s:repro("fc1-Dense/MatMul-op0", file, { step = 99 }) end):raises "step 99"
    expect(io.open(file)):is_nil()
    expect(function() s:repro("fc1-Dense/MatMul-op0", "/nowhere/at/all") end):raises "cannot be made"
    expect(function() s:repro(3, file) end):raises "repro: node: a node or its name is expected, not 3"
    expect(function() s:repro("fc1-Dense/MatMul-op0") end):raises "repro: directory: a path is expected, not nil"
    expect(function() msdbg.repro("fc1", "a", file) end):raises "repro: session: a session is expected, not fc1"
  end)
end)

describe("propagation", function()
  it("tells who absorbed the NaN", function()
    local cone = open("lenet-2.7.1-lognan"):propagation("Log-op0", { step = 0 })
    local absorbed = {}
    for _, node in ipairs(cone.nodes) do
      if node.role == "absorbed" then absorbed[#absorbed + 1] = node.op end
    end
    expect(absorbed):equals { "ReLU" }
    expect(cone.bad_elsewhere):equals(1)
    expect(cone:svg()):contains "<svg"
    expect(cone:dot()):contains "digraph"
  end)

  it("goes back to the operator that made it", function()
    local s = open "lenet-2.7.1-lognan"
    local cone = msdbg.propagation(s, s:tensor("fc2.weight", { step = 0 }), { up = true })
    local origins = {}
    for _, node in ipairs(cone.nodes) do
      if node.role == "origin" then origins[#origins + 1] = node.op end
    end
    expect(origins):equals { "Log" }
  end)

  it("goes back through the steps to the operator that broke", function()
    local s = open "lenet-2.7.1-lognan"
    local trail = msdbg.propagation(s, s:tensor("fc2.weight", { step = 1 }), { up = true }).trail
    local names = {}
    for i, link in ipairs(trail.links) do names[i] = ("%d %s"):format(link.step, link.op) end
    expect(names[1]):equals "1 Parameter"
    expect(names[2]):equals "0 ApplyMomentum"
    expect(names[#names]):equals "0 Log"
    expect(trail.ends_at):equals "origin"
    expect(tostring(msdbg.propagation(s, s:tensor("fc2.weight", { step = 1 }), { up = true }))):contains "before that"
  end)
end)

describe("why", function()
  it("finds the fused operator and the filter of iterations", function()
    expect(open("lenet-2.0.0-ok"):why("LeNet5/fc1-Dense/MatMul-op0").kind):equals "fused"
    local answer = open("lenet-2.0.0-filter"):why("conv1.weight", { step = 1 })
    expect(answer.kind):equals "iteration_not_dumped"
    expect(answer.evidence[1].path):contains "data_dump.json"
  end)
end)

describe("plan", function()
  it("writes the configuration for the neighbourhood of a node and says what it costs", function()
    local s = open "lenet-2.7.1-ok"
    -- The same plan was run with MindSpore: docs/dump-plan.md.
    local plan = s:plan { around = "conv1-Conv2d/Conv2D-op0", hops = 1, steps = "0:1", path = "/data/fine" }
    expect({ plan.nodes, plan.files_per_step, plan.bytes_per_step, plan.steps }):equals { 4, 7, 147160, 2 }
    expect(plan.configuration.common_dump_settings.iteration):equals "0-1"
    expect(tostring(plan)):contains '"path": "/data/fine"'
    expect(msdbg.plan(s, { on = s:node "conv1.weight" }).nodes):equals(1)
    expect(s:plan().steps):equals(nil)
  end)

  it("refuses what it cannot do", function()
    local s = open "lenet-2.7.1-ok"
    expect(function() s:plan { arround = "x" } end):raises "around"
    expect(function() s:plan { slots = "none" } end):raises "both, inputs, outputs is possible"
    expect(function() s:plan { on = "@weight", around = "conv1.weight" } end):raises "give one of them"
    expect(function() s:plan { path = "relative" } end):raises "absolute path"
  end)
end)

describe("source", function()
  it("puts the finding beside the planted line", function()
    local s = open "lenet-2.7.1-lognan"
    s:watch { on = "@all", when = "TO" }
    local found = msdbg.source(s, s:check { steps = 0 }, { file = "train.py" })
    local line
    for _, each in ipairs(found.files[1].lines) do
      if each.line == 70 then line = each end
    end
    expect(line.hits[1].abbr):equals "TO"
    expect(line.code):contains "self.log(x)"
    expect(tostring(found)):contains "TO"
  end)
end)

return test.finish()
