-- An answer is the same in Lua as in JSON: same names, same values.
local msdbg = require "msdbg"
local json = require "msdbg.json"
local test = require "msdbg.test"
local describe, it, expect = test.describe, test.it, test.expect

local data = ... .. "/dumps/"

-- The difference between a Lua value and its JSON form, or nil.
local function difference(value, said, at)
  if said == json.null then return value ~= nil and at .. " is null in JSON and " .. tostring(value) .. " in Lua" or nil end
  if said == "NaN" then return not (type(value) == "number" and value ~= value) and value ~= said and at .. " is no NaN" or nil end
  if said == "Infinity" then said = 1 / 0 elseif said == "-Infinity" then said = -1 / 0 end
  if type(said) ~= "table" then
    return value ~= said and ("%s is %s in JSON and %s in Lua"):format(at, tostring(said), tostring(value)) or nil
  end
  if type(value) ~= "table" and type(value) ~= "userdata" then return at .. " is a table in JSON and " .. tostring(value) .. " in Lua" end
  for key, field in pairs(said) do
    local found = difference(value[key], field, at .. "." .. tostring(key))
    if found then return found end
  end
  if type(value) == "table" and #said > 0 and #value ~= #said then return at .. " has another length in Lua" end
end

local function agrees(value, text, but)
  local said = json.decode(text)
  -- What is an index into a list counts from 1 in Lua.
  for _, hit in ipairs(said.hits or {}) do
    if hit.follows and hit.follows ~= json.null then hit.follows = hit.follows + 1 end
  end
  for _, key in ipairs(but or {}) do said[key] = nil end
  expect(difference(value, said, "answer")):equals(nil)
end

describe("an answer is the same in Lua and in JSON", function()
  local s = msdbg.open(data .. "lenet-2.7.1-lognan")

  it("check", function()
    s:watch { on = "**", when = "TO" }
    s:watch { on = "**", when = "max(x) > 1", name = "mine" }
    s:watch { on = "op:Log", when = function(t) return { actual = t.stats.min, note = "seen" } end }
    local result = s:check()
    expect(result.hits[1].message):contains "104 of 192 -Inf"
    agrees(result, msdbg.report(s, result):json(), { "msdbg", "gate" })
  end)

  it("causes of a check", function()
    local result = s:check { rules = "default" }
    local cause = result.causes[1]
    expect(cause.kind):equals "log_of_zero"
    expect(cause.sentence):equals "Log-op0, steps 0-1, train.py:70: logarithm of 0"
    local follow = 0
    for _, hit in ipairs(result.hits) do
      if hit.follows == 1 then follow = follow + 1 end
    end
    expect(follow):equals(cause.findings)
    agrees(result, msdbg.report(s, result):json(), { "msdbg", "gate" })
  end)

  it("origin", function()
    for _, name in ipairs { "lenet-2.7.1-lognan", "lenet-2.7.1-explode" } do
      local session = msdbg.open(data .. name)
      local found = msdbg.origin(session)
      agrees(found, msdbg.report(session, found):json(), { "msdbg" })
    end
  end)

  it("diff", function()
    local found = msdbg.diff(s, msdbg.open(data .. "lenet-2.7.1-ok"))
    expect(found.first.state):equals "different"
    agrees(found, found:json(), { "msdbg" })
  end)

  it("bisect, trend, propagation, why and source", function()
    for _, found in ipairs {
      msdbg.bisect(s, { on = "conv1.weight" }), msdbg.trend(s, "abs_mean", "@weight"), msdbg.why(s, "conv1.weight"), msdbg.source(s),
      msdbg.propagation(s, "Log-op0:0", { step = 0 }),
    } do
      agrees(found, found:json())
    end
  end)
end)

return test.finish()
