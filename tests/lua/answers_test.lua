-- An answer is the same in Lua as in JSON: same names, same values.
local msdbg = require "msdbg"
local formats = require "msdbg.format"
local guide = require "msdbg.guide"
local guide_main = require "msdbg.guide_main"
local json = require "msdbg.json"
local test = require "msdbg.test"
local describe, it, expect = test.describe, test.it, test.expect

local data = ... .. "/dumps/"
local checkpoints = ... .. "/checkpoints/lenet-2.7.1-explode/"

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

  it("layers and guide", function()
    local layers = msdbg.layers(s)
    agrees(layers, layers:json())
    local result = guide.run(s)
    agrees(result, (guide_main.main(s, "format=json")))
    expect(result.entries[1].chapter):equals "Data"
  end)

  it("checkpoints", function()
    local found = msdbg.checkpoint_diff(msdbg.checkpoint(checkpoints .. "lenet-1_0.ckpt"), msdbg.checkpoint(checkpoints .. "lenet-1_1.ckpt"))
    expect(found.parameters[1].change):equals "changed"
  end)
end)

-- The table says what the answer says: the texts and numbers of its first rows stand in it.
describe("a table shows its answer:", function()
  local s = msdbg.open(data .. "lenet-2.7.1-lognan")
  local short = formats.number

  local function shows(text, ...)
    for _, part in ipairs { ... } do expect(text):contains(tostring(part)) end
  end

  it("check", function()
    s:watch { on = "**", when = "TO" }
    local result = s:check()
    local text = tostring(result)
    for _, hit in ipairs(result.hits) do
      if not hit.follows then shows(text, hit.node, hit.abbr, hit.message) end
    end
    for _, cause in ipairs(result.causes) do shows(text, cause.findings, cause.sentence:match ": (.+)$") end
    shows(text, result.total_hits .. " hits", result.coverage.not_checked .. " not checked")
  end)

  it("origin", function()
    local found = msdbg.origin(s)
    local text, first = tostring(found), found.origins[1]
    shows(text, first.node, first.message, first.source.line, found.steps[1].bad_tensors .. " tensors")
    shows(text, first.inputs[1].message, first.chains[1][2].not_finite)
  end)

  it("diff", function()
    local found = msdbg.diff(s, msdbg.open(data .. "lenet-2.7.1-ok"))
    local text = tostring(found)
    shows(text, found.verdict, found.first.node, found.counts.equal .. " bit for bit equal", found.matched .. " matched")
    for _, culprit in ipairs(found.culprits) do shows(text, short(culprit.max_abs_error, 3)) end
  end)

  it("trend and layers", function()
    local trend, layers = msdbg.trend(s, "abs_mean", "@weight"), msdbg.layers(s)
    for _, line in ipairs(trend.tensors) do shows(tostring(trend), line.node, short(line.first), short(line.last)) end
    for _, layer in ipairs(layers.layers) do shows(tostring(layers), layer.name, short(layer.weight), short(layer.gradient)) end
  end)

  it("bisect, why and source", function()
    local bisect, why, source = msdbg.bisect(s, { on = "conv1.weight" }), msdbg.why(s, "conv1.weight"), msdbg.source(s)
    shows(tostring(bisect), bisect.target, bisect.predicate)
    shows(tostring(why), why.answer)
    for _, line in ipairs(source.files[1].lines) do
      if line.worst then shows(tostring(source), line.line, line.worst.message) end
    end
  end)
end)

return test.finish()
