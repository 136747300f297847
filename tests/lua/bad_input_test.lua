-- Wrong paths and damaged files.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"

describe("opening", function()
  it("a path that does not exist fails with its name", function()
    expect(function() msdbg.open "no/such/dump" end):raises("no/such/dump", "not_found")
  end)

  it("a folder without a dump fails", function()
    expect(function() msdbg.open(data .. "lenet-2.7.1-ok/rank_0/LeNet") end):raises "no dump here"
  end)

  it("nothing is misuse", function() expect(function() msdbg.open() end):raises("open: path: a string is expected", "invalid_argument") end)
end)

-- A copy of a dump in which `edit` changed the bytes of one tensor file. The caller removes it.
local function damaged(dump, name, where, edit)
  local copy = os.tmpname()
  os.remove(copy)
  assert(os.execute(("cp -r '%s' '%s'"):format(data .. dump, copy)) == 0)
  local source = msdbg.open(copy):tensor(name, where).source
  local file = assert(io.open(source, "rb"))
  local bytes = file:read "*a"
  file:close()
  file = assert(io.open(source, "wb"))
  file:write(edit(bytes))
  file:close()
  return copy
end

describe("a file that is cut off", function()
  local copy = damaged("lenet-2.7.1-lognan", "Log-op0:0", nil, function(bytes) return bytes:sub(1, #bytes - 100) end)
  local s = msdbg.open(copy)

  it("is listed and says what is wrong", function()
    local t = s:tensor "Log-op0:0"
    expect(t.problem ~= nil):is_true()
    expect(function() return t.stats end):raises("", "corrupt")
    expect(function() return t:view() end):raises("", "corrupt")
  end)

  it("is not checked, everything else is", function()
    s:watch { on = "**", when = "TO" }
    local r = s:check { steps = 0 }
    expect(#r.not_checked):equals(1)
    expect(r.not_checked[1].node):contains "Log-op0"
    expect(r.coverage.checked):equals(r.coverage.tensors - 1)
  end)

  os.execute(("rm -r '%s'"):format(copy))
end)

describe("a value that cannot be read in one step", function()
  local function no_header() return ("\0"):rep(20) end
  local function cut_off(bytes) return bytes:sub(1, 2000) end

  -- What the rules say of the tensor in step 2 after `edit` changed its file of step 1.
  local function reasons(name, rules, edit)
    local copy = damaged("lenet-2.7.1-ok", name, { step = 1 }, edit)
    local r = msdbg.open(copy):check { rules = rules }
    os.execute(("rm -r '%s'"):format(copy))
    local found = {}
    for _, entry in ipairs(r.not_checked) do
      if entry.step == 2 then
        expect(entry.node):equals(name)
        found[#found + 1] = entry.reason
      end
    end
    return found
  end

  local function says(found, count, what)
    expect(#found):equals(count)
    for _, reason in ipairs(found) do expect(reason):equals("previous step 1 cannot be used: " .. what) end
  end

  for _, case in ipairs {
    { "no header", no_header, "not an npy file (starts with 00 00 00 00)" },
    { "cut off", cut_off, "file is cut off: header promises 6144 bytes, 1872 are there" },
  } do
    it("a weight is not compared in the next step either: " .. case[1], function()
      says(reasons("fc2.weight", "update-too-large,update-too-small,unchanged-weight", case[2]), 3, case[3])
    end)
  end

  it("inputs are not compared in the next step either", function()
    says(reasons("inputs0", "frozen-inputs", no_header), 1, "not an npy file (starts with 00 00 00 00)")
  end)

  it("is left out of the earlier values", function()
    local copy = damaged("lenet-2.7.1-ok", "fc2.weight", { step = 1 }, cut_off)
    local earlier = require("msdbg.training").earlier(msdbg.open(copy):tensor("fc2.weight", { step = 2 }), 8)
    os.execute(("rm -r '%s'"):format(copy))
    expect(#earlier):equals(1)
    expect(earlier[1].step):equals(0)
  end)
end)

return test.finish()
