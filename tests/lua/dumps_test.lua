-- What the library says about each kind of real dump.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"
local function open(name) return msdbg.open(data .. name) end
local function list(values) return table.concat(values, ",") end

describe("steps", function()
  it("are the run's own numbers", function()
    expect(list(open "lenet-2.7.1-ok".steps)):equals "0,1,2"
    expect(list(open "lenet-2.0.0-filter".steps)):equals "0,2,3"
  end)

  it("move the session while a script walks them", function()
    local s, seen = open "lenet-2.0.0-filter", {}
    for step in s:each_step() do
      seen[#seen + 1] = step
      expect(s.current_step):equals(step)
    end
    expect(list(seen)):equals "0,2,3"
  end)

  it("skip what was not dumped when the previous value is asked for", function()
    local t = open "lenet-2.0.0-filter":tensor("fc1.weight", { step = 2 })
    expect(t:previous().step):equals(0)
  end)
end)

describe("graphs", function()
  it("are listed with their steps", function()
    local s = open "lenet-2.7.1-eval"
    expect(#s.graphs):equals(2)
    expect(list(s.graphs[1].steps)):equals "0,1"
    expect(list(s.graphs[2].steps)):equals "1,2"
  end)

  it("keep the executions of a loop body apart", function()
    local s = open "control-2.7.1"
    local tensors = s:tensors { on = "graph:1 or rank:0", steps = 1 }
    local most = 0
    for _, t in ipairs(tensors) do most = math.max(most, t.execution) end
    expect(most):equals(3)  -- step 1 runs the body three times, the test of the loop four times
  end)
end)

describe("every dump", function()
  local names = {
    "control-1.5.0", "control-2.0.0", "control-2.7.1", "lenet-1.5.0-ok", "lenet-2.0.0-filter", "lenet-2.0.0-ok", "lenet-2.7.1-eval",
    "lenet-2.7.1-explode", "lenet-2.7.1-lognan", "lenet-2.7.1-ok", "long-1.5.0", "long-2.0.0", "long-2.7.1", "synthetic-stat-new",
    "synthetic-stat-old", "two-1.5.0", "two-2.0.0", "two-2.7.1", "types-1.5.0", "types-2.0.0", "types-2.7.1",
  }
  for _, name in ipairs(names) do
    it(name .. " lists tensors that give statistics or say why not", function()
      local s, count = open(name), 0
      for _, t in ipairs(s:tensors { steps = "all", slots = "all" }) do
        local good, problem = pcall(function() return t.stats.count end)
        expect(tostring(t)):contains "<tensor "
        if not good then expect(problem.code ~= "internal" and problem.message ~= ""):is_true() end
        count = count + 1
      end
      expect(count > 0):is_true()
    end)

    it(name .. " names nodes that are found again", function()
      local s = open(name)
      for n in s:nodes():each() do expect(s:node(n.name, { rank = n.rank, graph = n.graph_id }).name):equals(n.name) end
    end)
  end
end)

describe("element types", function()
  it("are read through views as the core reads them", function()
    local s, kinds = open "types-2.7.1", {}
    for _, t in ipairs(s:tensors { steps = "all" }) do
      local good, view = pcall(t.view, t)
      if good and view.n > 0 then
        kinds[t.dtype] = true
        local coordinates = {}
        for axis = 1, #t.shape do coordinates[axis] = t.shape[axis] - 1 end
        local last = t:at(unpack(coordinates))
        local got = view[view.n - 1]
        expect(got == last or (got ~= got and last ~= last)):is_true()
      end
    end
    for _, dtype in ipairs { "bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64" } do
      if not kinds[dtype] then error("no tensor of type " .. dtype) end
    end
  end)
end)

return test.finish()
