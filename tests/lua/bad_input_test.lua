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

describe("a file that is cut off", function()
  -- A copy of a dump with one tensor file shortened.
  local copy = os.tmpname()
  os.remove(copy)
  assert(os.execute(("cp -r '%s' '%s'"):format(data .. "lenet-2.7.1-lognan", copy)) == 0)
  local source = msdbg.open(copy):tensor("Log-op0:0").source
  local file = assert(io.open(source, "rb"))
  local bytes = file:read "*a"
  file:close()
  file = assert(io.open(source, "wb"))
  file:write(bytes:sub(1, #bytes - 100))
  file:close()
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

describe("a weight that cannot be read in one step", function()
  local rules = "update-too-large,update-too-small,unchanged-weight"

  -- What the rules say of the weight when its file of step 1 is reduced to what `edit` leaves.
  local function reasons(edit)
    local copy = os.tmpname()
    os.remove(copy)
    assert(os.execute(("cp -r '%s' '%s'"):format(data .. "lenet-2.7.1-ok", copy)) == 0)
    local source = msdbg.open(copy):tensor("fc2.weight", { step = 1 }).source
    local file = assert(io.open(source, "rb"))
    local bytes = file:read "*a"
    file:close()
    file = assert(io.open(source, "wb"))
    file:write(edit(bytes))
    file:close()
    local r = msdbg.open(copy):check { rules = rules }
    os.execute(("rm -r '%s'"):format(copy))
    local found = {}
    for _, entry in ipairs(r.not_checked) do
      if entry.step == 2 then
        expect(entry.node):equals "fc2.weight"
        found[#found + 1] = entry.reason
      end
    end
    return found
  end

  local function says(found, what)
    expect(#found):equals(3)
    for _, reason in ipairs(found) do expect(reason):equals("previous step 1 cannot be used: " .. what) end
  end

  it("is not compared in the next step either: no header", function()
    says(reasons(function() return ("\0"):rep(20) end), "not an npy file (starts with 00 00 00 00)")
  end)

  it("is not compared in the next step either: cut off", function()
    says(reasons(function(bytes) return bytes:sub(1, 2000) end), "file is cut off: header promises 6144 bytes, 1872 are there")
  end)
end)

return test.finish()
