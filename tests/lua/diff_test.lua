-- Comparisons from scripts. The numbers are those of tests/analysis/diff_dumps_test.cpp.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"
local function open(name) return msdbg.open(data .. name) end

describe("msdbg.diff", function()
  it("finds that two releases agree", function()
    local found = msdbg.diff(open "lenet-2.7.1-ok", open "lenet-2.0.0-ok")
    expect(found.verdict):equals "equal"
    expect(found.first):equals(nil)
    expect(found.notes[1]):equals "step 2: only in A"
    expect(found:json()):contains '"verdict": "equal"'
  end)

  it("names the planted operator", function()
    local found = msdbg.diff(open "lenet-2.7.1-ok", open "lenet-2.7.1-lognan")
    expect(found.equal):equals(false)
    expect(found.first.nan_mismatch):equals(128)
    expect(found.first.role):equals "victim"
    expect(found.first.worst_input):equals "input:0 Default/network-WithLossCell/_backbone-LeNet5/Log-op0 (only in B)"
    expect(tostring(found)):contains "different:"
  end)
end)

describe("t:diff", function()
  it("compares with the value of the step before", function()
    local now = open("lenet-2.7.1-ok"):tensor("fc1.weight", { step = 1 })
    local found = now:diff(now:previous(), 0.05)
    expect(found.equal):equals(false)
    expect(found.difference.shape[1]):equals(now.shape[1])
    expect(found.boundary):equals(found.max_abs_error * 0.05)
    expect(now:diff(now).equal):equals(true)
  end)
end)

describe("msdbg.series", function()
  it("reads logs and tables, and says which pass differs", function()
    local reference = data .. "lenet-2.7.1-ok/printed.txt"
    expect(msdbg.series.compare(data .. "lenet-2.7.1-explode/printed.txt", reference).verdict):equals "forward"
    expect(msdbg.series.compare({ 2, 3 }, { 2, 2 }).verdict):equals "backward"
    expect(msdbg.series.read(reference).steps[1]):equals(0)
  end)
end)

return test.finish()
