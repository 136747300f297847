-- msdbg.origin on the real dumps: the statements that the makers of the data wrote about them.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"
local function origin(name, options) return msdbg.origin(msdbg.open(data .. name), options) end

-- The first cause of each step.
local function firsts(found)
  local list = {}
  for _, o in ipairs(found.origins) do
    if o.order == 1 then list[#list + 1] = o end
  end
  return list
end

describe("the origin", function()
  it("of the planted fault is Log, with a sound input and the source line", function()
    local found = origin "lenet-2.7.1-lognan"
    expect(#found.steps):equals(2)
    local first = firsts(found)[1]
    expect(first.node):equals "Default/network-WithLossCell/_backbone-LeNet5/Log-op0"
    expect(first.kind):equals "operator"
    expect(first.bad_count):equals(104)
    expect({ first.first[1][2], first.first[2][2], first.first[3][2] }):equals { 0, 4, 5 }
    expect(first.inputs[1].state):equals "sound"
    expect(first.inputs[1].stats.zero_count):equals(104)
    expect(first.stack[1].line):equals(70)
    expect(firsts(found)[2].node):equals(first.node)
  end)

  it("is the loss alone in steps 2 and 3 of the exploding run, then a product of finite inputs", function()
    local found = origin "lenet-2.7.1-explode"
    expect(#found.steps):equals(3)
    expect(found.steps[1].step):equals(2)
    expect(firsts(found)[1].node):contains "SparseSoftmaxCrossEntropyWithLogits-op0"
    expect(found.steps[1].bad_tensors):equals(1)
    local last = firsts(found)[3]
    expect(last.node):contains "fc2-Dense/MatMul-op0"
    expect(last.stats.nan_count):equals(64)
  end)

  it("does not exist in a healthy run", function() expect(#origin "lenet-2.7.1-ok".origins):equals(0) end)

  it("takes a condition or a function as predicate", function()
    local by_text = origin("lenet-2.7.1-explode", { when = "TL max_gt=1e30", steps = 4 })
    local by_function = origin("lenet-2.7.1-explode", { when = function(t) return (t.stats.max or 0) > 1e30 end, steps = 4, semantics = "finite" })
    expect(by_function.predicate):contains "function"
    expect(#by_text.origins > 0 and #by_function.origins > 0):is_true()
    expect(by_function.origins[1].node):equals(by_text.origins[1].node)
  end)

  it("prints as a report and as JSON", function()
    local s = msdbg.open(data .. "lenet-2.7.1-lognan")
    local found = msdbg.origin(s)
    expect(tostring(found)):contains "train.py:70"
    expect(msdbg.report(s, found):json()):contains '"origins"'
  end)
end)

return test.finish()
