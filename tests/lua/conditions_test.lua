-- Watchpoints on the real dumps.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"
local function open(name, options) return msdbg.open(data .. name, options) end

describe("conditions", function()
  it("find nothing in a healthy run, and looked at everything", function()
    local s = open "lenet-2.7.1-ok"
    s:watch { on = "**", when = "TO" }
    local r = s:check()
    expect(#r.hits):equals(0)
    expect(#r.not_checked):equals(0)
    expect(r.coverage.tensors):equals(198)
    expect(r.coverage.checked):equals(198)
  end)

  it("find the dead activation of the planted fault in both steps", function()
    local s = open "lenet-2.7.1-lognan"
    s:watch { on = "@activation", when = "TZ", zero_percentage_ge = 100 }
    local r = s:check()
    expect(#r.hits):equals(2)
    expect(r.hits[1].node):contains "relu4-ReLU/ReLU-op0"
    expect(r.hits[1].params[1].actual):equals(100)
  end)

  it("judge in the mode that was asked for", function()
    local s = open "lenet-2.7.1-lognan"
    s:watch { on = "Log-op0", when = "TS", max_lt = 0 }
    local compat, finite = s:check { steps = 0 }, s:check { steps = 0, semantics = "finite" }
    expect(#compat.hits):equals(0)
    expect(compat.not_checked[1].error_code):equals(2)
    expect(#finite.hits):equals(1)
    expect(finite.hits[1].params[1].actual):equals(-2.644078016281128)
  end)

  it("are decided again without reading a tensor", function()
    local s = open "lenet-2.7.1-explode"
    local w = s:watch { on = "**", when = "TL", max_gt = 1 }
    local first = s:check()
    w:set { max_gt = 1e30 }
    local second = s:recheck()
    expect(#second.hits < #first.hits):is_true()
    expect(second.coverage.from_cache):equals(second.coverage.tensors)
    expect(second.coverage.bytes):equals(0)
  end)

  it("give the same hits with any number of threads", function()
    local function hits(threads)
      local s = open("lenet-2.7.1-explode", { threads = threads })
      s:watch { on = "**", when = "TO" }
      local names = {}
      for i, hit in ipairs(s:check().hits) do names[i] = hit.step .. hit.node .. hit.slot end
      return table.concat(names, "\n")
    end
    expect(hits(1)):equals(hits(4))
  end)
end)

describe("functions", function()
  it("see finished statistics, in execution order", function()
    local s, seen = open "lenet-2.7.1-lognan", {}
    s:watch { name = "order", on = "@activation", when = function(t, ctx)
      seen[#seen + 1] = ctx.step .. t.node.scope:match "[^/]+$"
      return t.stats.zero_percentage == 100
    end }
    local r = s:check()
    expect(#r.hits):equals(2)
    expect(r.hits[1].rule):equals "order"
    expect(table.concat(seen, " ")):equals
      "0relu1-ReLU 0relu2-ReLU 0relu3-ReLU 0relu4-ReLU 1relu1-ReLU 1relu2-ReLU 1relu3-ReLU 1relu4-ReLU"
  end)

  it("that fail make that tensor not checked, with file and line", function()
    local s = open "lenet-2.7.1-ok"
    s:watch { on = "@activation", when = function() error "broken rule" end }
    s:watch { on = "@activation", when = "TO" }
    local r = s:check { steps = 0 }
    expect(#r.not_checked):equals(4)
    expect(r.not_checked[1].reason):contains "rule error: "
    expect(r.not_checked[1].reason):contains "conditions_test.lua:"
    expect(r.not_checked[1].reason):contains "broken rule"
    expect(r.coverage.checked):equals(0)
  end)
end)

describe("the statistics of a statistic.csv", function()
  it("decide what they can and say so of the rest", function()
    local s = open "synthetic-stat-new"
    s:watch { on = "**", when = "TL", max_gt = 1e9 }
    s:watch { on = "**", when = "TR", range_start_inclusive = 0, range_end_inclusive = 1, range_percentage_gt = 50 }
    local r = s:check()
    expect(#r.not_checked > 0):is_true()
    local reasons = {}
    for _, entry in ipairs(r.not_checked) do reasons[entry.reason] = true end
    expect(reasons["no tensor data (statistics only)"]):is_true()
  end)
end)

return test.finish()
