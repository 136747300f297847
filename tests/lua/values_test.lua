-- Values of the real dumps, all the way from the file to Lua.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"
local ok = msdbg.open(data .. "lenet-2.7.1-ok")
local lognan = msdbg.open(data .. "lenet-2.7.1-lognan")

describe("a healthy LeNet", function()
  it("has the update ratios and magnitudes of the transcript", function()
    local wanted = {
      ["conv1.weight"] = { 0.0843, 0.0008081 }, ["conv2.weight"] = { 0.0779, 0.0001886 }, ["fc1.weight"] = { 0.0395, 0.0001064 },
    }
    local seen = 0
    for w in ok:nodes "@weight":each() do
      local pair = wanted[w.name]
      if pair then
        local now, before = w:value { step = 1 }, w:value { step = 0 }
        expect(now.stats.abs_mean):is_near(pair[1], 1e-2)
        expect(now:change_ratio(before)):is_near(pair[2], 1e-3)
        expect(now:previous().step):equals(0)
        seen = seen + 1
      end
    end
    expect(seen):equals(3)
  end)

  it("has no value before its first step", function()
    local none, why, code = ok:node "fc1.weight":value { step = -1 }
    expect(none):is_nil()
    expect(why):contains "not dumped"
    expect(code):equals "not_found"
  end)

  it("gives a kernel the very bytes that its producer made", function()
    local conv = ok:node "conv2-Conv2d/Conv2D-op0"
    local producer = conv.inputs[1]
    local index = tonumber(producer.slot:match "%d+")
    local made, taken = producer.node:output(index, { step = 2 }):view(), conv:input(0, { step = 2 }):view()
    expect(made.n):equals(taken.n)
    for i = 0, made.n - 1 do
      if made[i] ~= taken[i] then error("differs at " .. i) end
    end
  end)
end)

describe("the planted log(0)", function()
  local t = lognan:tensor "Log-op0:0"

  it("has the statistics of MindSpore's own reader", function()
    local stats = t.stats
    expect(stats.count):equals(192)
    expect(stats.neg_inf_count):equals(104)
    expect(stats.nan_count):equals(0)
    expect(stats.neg_count):equals(88)
    expect(stats.max):equals(-2.644078016281128)
    expect(stats.min):equals(-7.276463508605957)
    expect(stats.mean):is_near(-4.140380583026192, 1e-12)
    expect({ unpack(stats.first_bad) }):equals { 0, 0 }
  end)

  it("prints as the transcript has it", function()
    expect(tostring(t)):equals "<tensor Log-op0:output:0 float32[4,48] step 0>"
  end)

  it("finds its infinities by word, comparison and function", function()
    expect(#t:where "isinf(x)"):equals(104)
    expect(#t:where "x < -7"):equals(105)
    local places, total = t:where(function(x) return x == -math.huge end)
    expect(total):equals(104)
    expect({ places[1][1], places[1][2], places[2][2], places[3][2] }):equals { 0, 0, 4, 5 }
  end)

  it("has zeros at the same places in its input", function()
    local input = lognan:tensor "Log-op0:input:0"
    expect(input.stats.zero_count):equals(104)
    expect(input.stats.max):equals(0.07107080519199371)
    local zeros, bad = input:where "zero", t:where "inf"
    for i, place in ipairs(zeros) do expect(place.index):equals(bad[i].index) end
  end)

  it("is sliced, ranked and counted", function()
    local row = t:slice "1,:"
    expect({ unpack(row.shape) }):equals { 48 }
    local all = 0
    for i = 0, 3 do all = all + t:slice(i .. ",:").stats.neg_inf_count end
    expect(all):equals(104)
    expect(t:worst(105)[105].value):equals(-7.276463508605957)
    expect(t:quantile(0)):equals(-7.276463508605957)
    expect(t:quantile(1)):equals(-2.644078016281128)
    local histogram, sum = t:histogram { bins = 8 }, 0
    for _, count in ipairs(histogram.counts) do sum = sum + count end
    expect(sum):equals(88)
    expect(histogram.nonfinite):equals(104)
  end)

  it("has 88 in the second step", function()
    expect(lognan:tensor("Log-op0:0", { step = 1 }).stats.neg_inf_count):equals(88)
    expect(lognan:tensor("Log-op0:0", { step = 1 }):previous().stats.neg_inf_count):equals(104)
  end)

  it("came from what the operator took", function()
    local taken = t:operand(0)
    expect(taken.slot):equals "input:0"
    expect(taken.stats.zero_count):equals(104)
    expect(t:operand(1)):is_nil()
    expect(function() return t:operand(-1) end):raises "operand: input"
    expect((ok:node "fc1.weight":value { step = 0 }:operand(0))):is_nil()
  end)

  it("survives being saved and read as npy", function()
    local path = os.tmpname()
    t:save(path)
    local file = assert(io.open(path, "rb"))
    local bytes = file:read "*a"
    file:close()
    os.remove(path)
    expect(bytes:sub(2, 6)):equals "NUMPY"
    expect(#bytes % 64):equals(768 % 64)
    expect(bytes):contains "(4, 48)"
  end)
end)

return test.finish()
