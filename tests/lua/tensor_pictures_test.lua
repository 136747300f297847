-- Views of one tensor: slices, differences, heat maps, histograms, sparklines; on dumps and on a training.
local pictures = require "msdbg.tensor_pictures"
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"
local lognan = msdbg.open(data .. "lenet-2.7.1-lognan")
local ok = msdbg.open(data .. "lenet-2.7.1-ok")
local log = lognan:tensor("Log-op0:0", { step = 1 })

local function lines(text)
  local list = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do list[#list + 1] = line end
  return list
end

describe("show", function()
  it("cuts a slice", function()
    local text = pictures.show(log, { slice = "1:3,:3" })
    expect(text):contains "<tensor Log-op0:output:0[1:3,:3] float32[2,3] step 1>"
    expect(text):contains "6 elements, 3 finite"
    expect(text):contains "-3.25661     -Inf     -Inf"
    expect(function() pictures.show(log, { slice = "9,:" }) end):raises "axis 0"
  end)

  it("puts the previous value and the difference beside each element", function()
    local text = pictures.show(log, { previous = true, rows = 4 })
    expect(text):contains "previous   step 0: 192 elements, 88 finite"
    expect(text):contains "[0,0]         -4.94311      -Inf        +Inf"
    expect(text):contains "... 188 more"
    expect(text):contains "[3,46]            -Inf      -Inf           0"
    expect(text):contains "140 of 192 elements changed"
  end)

  it("puts the largest differences first when asked", function()
    local weight = ok:tensor("conv2.weight", { step = 2 })
    local text = pictures.show(weight, { previous = true, sort = "difference", rows = 5 })
    local now, before, most, where = weight:view(), weight:previous():view(), 0, nil
    for i = 0, now.n - 1 do
      local d = math.abs(now[i] - before[i])
      if d > most then most, where = d, i end
    end
    local place = ("[%d,%d,%d,%d]"):format(math.floor(where / 75), math.floor(where / 25) % 3, math.floor(where / 5) % 5, where % 5)
    local first
    for i, line in ipairs(lines(text)) do first = first or (line:match "^  element" and lines(text)[i + 1]) end
    expect(first):contains(place .. " ")
    expect(function() pictures.show(weight, { sort = "difference" }) end):raises "goes with previous"
  end)

  it("says that there is no previous value", function()
    local text = pictures.show(ok:tensor("conv1.weight", { step = 0 }), { previous = true, rows = 2 })
    expect(text):contains "previous   step 0 is the first of graph 0"
    expect(text):contains "conv1.weight"
  end)
end)

describe("a heat map", function()
  it("shows a matrix with a mark for every infinity", function()
    local text = pictures.heatmap(log, { ascii = true, colour = false })
    local list = lines(text)
    expect(list[2]):equals "  4 x 48"
    expect(#list):equals(7)
    local marks = 0
    for r = 3, 6 do
      expect(#list[r]):equals(48 + 6)
      marks = marks + select(2, list[r]:match("|(.*)|"):gsub("v", ""))
    end
    expect(marks):equals(88)
    expect(list[7]):contains "v -Inf"
  end)

  it("turns around, chooses axes and condenses", function()
    local turned = lines(pictures.heatmap(log, { axes = { 1, 0 }, rows = 100, ascii = true, colour = false }))
    expect(turned[2]):equals "  48 x 4"
    local plain = lines(pictures.heatmap(log, { ascii = true, colour = false }))
    for row = 0, 3 do
      expect(turned[3 + 5]:match("|(.*)|"):sub(row + 1, row + 1)):equals(plain[3 + row]:match("|(.*)|"):sub(6, 6))
    end
    local small = lines(pictures.heatmap(log, { rows = 2, ascii = true, colour = false }))
    expect(small[2]):contains "a cell is 2 x 1 elements"
    local kernel = pictures.heatmap(ok:tensor "conv2.weight", { axes = { 0, 1 }, ascii = true, colour = false })
    expect(kernel):contains "[:,:,0,0]"
    expect(kernel):contains "6 x 3"
    expect(function() pictures.heatmap(log, { axes = { 0, 0 } }) end):raises "one axis twice"
    expect(function() pictures.heatmap(log, { axes = { 0, 5 } }) end):raises "two axes from 0 to 1"
  end)

  it("takes vectors, scalars and empty tensors", function()
    expect(pictures.heatmap(ok:tensor "fc1.bias", { ascii = true })):contains "1 x 48"
    expect(pictures.heatmap(log:slice "0,0", { ascii = true })):contains "1 x 1"
    expect(pictures.heatmap(log:slice "0:0,:", { ascii = true })):contains "no elements"
  end)
end)

describe("hist and spark", function()
  it("count every finite element", function()
    local text = pictures.hist(log, { bins = 4, ascii = true, width = 60 })
    local sum = 0
    for line in text:gmatch "[^\n]+" do sum = sum + tonumber(line:match "| #* *(%d+)$" or 0) end
    expect(sum):equals(104)
    expect(text):contains "and 88 Inf"
  end)

  it("follow a statistic over the steps", function()
    expect(pictures.spark(log, "neg_inf_count", { ascii = true, colour = false }))
      :equals "neg_inf_count of Log-op0\n  @_   steps 0 to 1   88 to 104"
    expect(pictures.spark(ok:tensor("conv2.weight", { step = 2 }), "change", { ascii = true, colour = false }))
      :equals "change of conv2.weight\n   _@   steps 1 to 2   0.0001886 to 0.0003094, 1 without it"
    expect(pictures.spark(log, "mean", { 0 })):contains "steps 0 to 0"
    expect(function() pictures.spark(log, "meen") end):raises "did you mean 'mean'"
  end)
end)

describe("a training", function()
  it("is looked at as a dump is", function()
    local s = msdbg.listen {}
    s:step(2)
    local t
    for _, each in ipairs(s:tensors()) do t = t or (each.size > 1 and each) end
    expect(pictures.show(t, { previous = true })):contains "previous"
    expect(pictures.heatmap(t, { ascii = true })):contains "|"
    expect(pictures.hist(t, { bins = 3, ascii = true })):contains "|"
    expect(pictures.spark(t, "mean", { ascii = true })):contains "mean of"
    s:terminate()
    s:close()
  end)
end)

return test.finish()
