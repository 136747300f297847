-- Live sessions from a script's point of view, with a training in memory: three steps, the gradient of the third is NaN.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, it, expect = test.describe, test.it, test.expect

local function with_training(fn)
  return function()
    local s = msdbg.listen()
    local ok, problem = pcall(fn, s)
    if s.state == "held" or s.state == "running" then s:terminate() end
    s:close()
    if not ok then error(problem, 0) end
  end
end

describe("a live session", function()
  it("is held before the first step", with_training(function(s)
    expect(s.state):equals "held"
    expect(s.completed_steps):equals(0)
    expect(s:tensor("fc.weight"):at(0)):equals(1)
  end))

  it("finds the first bad gradient and its line", with_training(function(s)
    s:watch { on = "**", when = "TO" }
    local r = s:continue()
    expect(r.reason):equals "hit"
    expect(r.step):equals(2)
    expect(s:node(r.hits[1].node).op):equals "ReluGrad"
    expect(msdbg.origin(s).origins[1].node):equals(r.hits[1].node)
  end))

  it("narrows a condition without running on", with_training(function(s)
    s:step()
    local w = s:watch { on = "op:MatMul", when = "TL", max_gt = 100 }
    local bound, count = 100, #s:recheck().hits
    while count == 0 do
      bound = bound / 10
      w:set { max_gt = bound }
      count = #s:recheck().hits
    end
    expect(bound):equals(1)
    expect(s.completed_steps):equals(1)
  end))

  it("walks through a step operator by operator", with_training(function(s)
    local names = {}
    repeat
      local r = s:next_node()
      if r.completed_steps == 0 then names[#names + 1] = s:node(r.node).op end
    until r.completed_steps > 0
    expect(table.concat(names, " ")):equals "MatMul ReLU ReluGrad"
  end))

  it("keeps statistics of the steps behind", with_training(function(s)
    local before = {}
    for step in s:each_step() do
      before[step] = s:tensor("MatMul-op0").stats.mean
      if step == 2 then break end
    end
    for back = 2, 1, -1 do
      s:goto_step(-back)
      expect(s:tensor("MatMul-op0").stats.mean):equals(before[2 - back])
    end
  end))

  it("keeps views of values that are gone", with_training(function(s)
    local view = s:tensor("fc.weight"):view()
    s:step(2)
    expect(view[0]):equals(1)
  end))

  it("survives an error in a callback", with_training(function(s)
    s:on("hit", function(hit) return hit.nothing.at_all end)
    s:watch { on = "@gradient", when = "TO" }
    expect(function() s:continue() end):raises "attempt to index field 'nothing'"
    expect(s.state):equals "held"
    s:on("hit", false)
    expect(s:recheck().reason):equals "hit"
  end))

  it("gives its hits to a report", with_training(function(s)
    s:watch { on = "@gradient", when = "TO" }
    local r = s:continue()
    expect(msdbg.report(s, r.check):json()):contains '"rule": "tensor_overflow"'
    expect(tostring(r)):contains "1 of 2 NaN"
  end))

  it("stops once", with_training(function(s)
    local w = s:watch { on = "op:MatMul", when = "TL", max_gt = 2.5, once = true }
    expect(w.once):equals(true)
    local r = s:continue()
    expect(r.completed_steps):equals(1)
    expect(tostring(r)):contains "watch 1 was for one hit and is removed"
    expect(#s:watches()):equals(0)
    expect(s:continue().reason):equals "ended"
  end))

  it("lets hits pass that a watchpoint ignores", with_training(function(s)
    local w = s:watch { on = "op:MatMul", when = "TL", max_gt = 2.5, ignore = 1 }
    local r = s:continue()
    expect(r.completed_steps):equals(2)
    expect(w.ignores):equals(0)
    w:ignore(5)
    expect(tostring(w)):contains "ignores the next 5 hits"
    expect(s:continue().reason):equals "ended"
    expect(w.ignores):equals(4)
    expect(function() w:ignore(-1) end):raises "0 or more"
  end))

  it("lets hits of early steps pass", with_training(function(s)
    local w = s:watch { on = "op:MatMul", when = "TL", max_gt = 2.5, from_step = 1 }
    expect(w.from_step):equals(1)
    expect(tostring(w)):contains ", from step 1 on"
    local r = s:continue()
    expect(r.reason):equals "hit"
    expect(r.hits[1].step):equals(1)
    expect(#r.hits):equals(1)
    w:set { from_step = 7 }
    expect(s:continue().reason):equals "ended"
    expect(function() s:watch { on = "op:MatMul", when = "TO", from_step = -1 } end):raises "from_step"
  end))

  it("does not call good what has no value", with_training(function(s)
    s:next_node()
    expect(tostring(msdbg.origin(s))):contains "2 operators have no value now: they have not run in this step, or nothing watches them"
    s:step()
    expect(tostring(msdbg.origin(s)):find("no value now", 1, true)):equals(nil)
  end))

  it("is held where a watchpoint could not check what is NaN", with_training(function(s)
    s:watch { on = "@gradient", when = "GV abs_mean_lt=1e-9" }
    expect(tostring(s:continue())):contains "something could not be checked"
  end))

  it("passes over that in early steps", with_training(function(s)
    s:watch { on = "@gradient", when = "GV abs_mean_lt=1e-9", from_step = 100 }
    expect(s:continue().reason):equals "ended"
  end))

  it("saves what a watchpoint does when it hits", with_training(function(s)
    s:watch { on = "op:MatMul", when = "TL", max_gt = 2.5, once = true, ignore = 3, from_step = 2, commands = { 'print "hit"', "stats @loss" } }
    local path = os.tmpname()
    s:save_watches(path)
    s:watches()[1]:remove()
    local w = s:load_watches(path)[1]
    os.remove(path)
    expect(w.once):equals(true)
    expect(w.ignores):equals(3)
    expect(w.from_step):equals(2)
    expect(table.concat(w.commands, "; ")):equals 'print "hit"; stats @loss'
  end))

  it("gives rules the same options", with_training(function(s)
    local w = s:watch { rule = "tensor_overflow", once = true, ignore = 2 }
    expect(w.once):equals(true)
    expect(w.ignores):equals(2)
    expect(function() s:watch { rule = "tensor_overflow", ignore = -1 } end):raises "ignore"
    expect(#s:watches()):equals(1)
  end))

  it("ends once", with_training(function(s)
    local ends = 0
    s:on("end", function(r)
      ends = ends + 1
      expect(r.state):equals "ended"
    end)
    s:continue { steps = 100 }
    expect(function() s:step() end):raises("not delivered", "unsupported")
    expect(ends):equals(1)
  end))
end)

return test.finish()
