-- Tables, formats, plots, JSON: text from the standard library.
local dtype = require "msdbg.dtype"
local format = require "msdbg.format"
local json = require "msdbg.json"
local plot = require "msdbg.plot"
local progress = require "msdbg.progress"
local tables = require "msdbg.table"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local NAN, INF = 0 / 0, 1 / 0

describe("format", function()
  it("writes numbers, counts and bytes as the program does", function()
    expect(format.number(0.0843219)):equals "0.08432"
    expect(format.number(-INF)):equals "-Inf"
    expect(format.number(nil)):equals "-"
    expect(format.exact(0.1)):equals "0.1"
    expect(format.count(12345678)):equals "12,345,678"
    expect(format.count(-123)):equals "-123"
    expect(format.count(-123456)):equals "-123,456"
    expect(format.bytes(5242880)):equals "5.0 MiB"
    expect(function() format.count(1.5) end):raises("whole number", "invalid_argument")
  end)

  it("writes numbers as ranges", function()
    expect(format.ranges {}):equals "none"
    expect(format.ranges { 0, 1, 2, 7, 9 }):equals "0-2, 7, 9"
    expect(format.ranges { 0, 2, 4, 6, 8, 10, 11, 12, 20 }):equals "0, 2, ..., 10, 11-12, 20"
  end)

  it("keeps what strings hold inside their line", function()
    expect(format.line("%s has %d users", "a\27[31m\nb\226\128\174", 3)):equals "a?[31m?b? has 3 users"
    expect(format.line("%s, %s", nil, true)):equals "nil, true"
    expect(format.line("\n%s", "\228\184\173")):equals "\n\228\184\173"
    expect(format.columns { { "node", "x\ny" }, { "\228\184\173", "z", "" } }):equals "node  x?y\n\228\184\173    z"
  end)

  it("writes durations with the unit that fits", function()
    expect(format.duration(0.00085)):equals "850 us"
    expect(format.duration(0.0123)):equals "12.3 ms"
    expect(format.duration(4.21)):equals "4.2 s"
    expect(format.duration(59.96)):equals "1:00 min"
    expect(format.duration(187)):equals "3:07 min"
    expect(format.duration(7510)):equals "2:05:10 h"
  end)

  it("does not round small shares to nothing", function()
    expect(format.percent(0.256)):equals "25.6 %"
    expect(format.percent(0.0001)):equals "0.01 %"
    expect(format.percent(0)):equals "0.0 %"
  end)

  it("counts code points, not bytes", function()
    expect(format.width "größe"):equals(5)
    expect(format.head("größe", 3)):equals "grö"
    expect(format.pad("ö", 3, true)):equals "  ö"
  end)

  it("takes leading scopes away first", function()
    expect(format.shorten("Default/network/fc1/MatMul-op0", 20)):equals ".../fc1/MatMul-op0"
    expect(format.shorten("short", 20)):equals "short"
    expect(format.shorten("abcdefghij", 6)):equals "abc..."
  end)
end)

describe("a table", function()
  local rows = tables.of({ "step", "node", { "mean", digits = 3 } }, { { 1, "a/b,c", 0.25 }, { 12, nil, INF }, { 3, "x|y", NAN } })

  it("aligns numbers at the right and leaves no blanks at the end", function()
    expect(rows:text { width = 80 }):equals "step  node   mean\n   1  a/b,c  0.25\n  12         +Inf\n   3  x|y     NaN"
    expect(tostring(rows)):equals(rows:text {})
  end)

  it("quotes CSV and keeps every digit", function()
    expect(rows:csv()):equals 'step,node,mean\r\n1,"a/b,c",0.25\r\n12,,Infinity\r\n3,x|y,NaN\r\n'
    expect(tables.of({ "x" }, { { 1 / 3 }, { 'a "b"\n' } }):csv()):equals 'x\r\n0.3333333333333333\r\n"a ""b""\n"\r\n'
  end)

  it("escapes Markdown", function()
    expect(rows:markdown()):equals "| step | node | mean |\n|--:|---|--:|\n| 1 | a/b,c | 0.25 |\n| 12 |  | +Inf |\n| 3 | x\\|y | NaN |"
  end)

  it("fits a narrow terminal by shortening texts, never numbers", function()
    local wide = tables.of({ "node", "value" }, { { "Default/network/layer/fc1/MatMul-op0", 123456 } })
    local text = wide:text { width = 30 }
    for line in text:gmatch "[^\n]+" do expect(#line <= 30):is_true() end
    expect(text):contains ".../fc1/MatMul-op0"
    expect(text):contains "123456"
  end)

  it("sorts by a column with empty cells and NaN last", function()
    local sorted = tables.of({ "n" }, { { 2 }, { NAN }, { 10 }, {}, { -1 } }):sort("n", true)
    expect({ sorted.rows[1][1], sorted.rows[2][1], sorted.rows[3][1] }):equals { 10, 2, -1 }
    expect(function() sorted:sort "m" end):raises "no column 'm'"
  end)

  it("cannot be steered by escape codes in a name", function()
    expect(tables.of({ "name" }, { { "a\27[31mb" } }):text {}):equals "name\na?[31mb"
  end)

  it("refuses options and cells that it does not know", function()
    expect(function() rows:text { widht = 3 } end):raises("did you mean 'width'", "invalid_argument")
    expect(function() rows:add(1, 2, 3, 4) end):raises "4 cells in a table of 3"
    expect(function() tables.new { { "x", align = "middle" } } end):raises "one of left, right"
  end)
end)

describe("a plot", function()
  it("draws a sparkline in blocks or ASCII, with marks for what is not finite", function()
    expect(plot.sparkline({ 1, 2, 3, 4, 5, 6, 7, 8 }, { ascii = false, colour = false })):equals "▁▂▃▄▅▆▇█"
    expect(plot.sparkline({ 1, 8, NAN, INF, -INF, false, 1 }, { ascii = true, colour = false })):equals "_@N^v _"
    expect(plot.sparkline({ 3, 3 }, { ascii = true, colour = false })):equals "=="
    expect(plot.sparkline({}, { ascii = true })):equals ""
  end)

  it("condenses a long series without losing its NaN", function()
    local values = {}
    for i = 1, 1000 do values[i] = i end
    values[500] = NAN
    local line = plot.sparkline(values, { width = 10, ascii = true, colour = false })
    expect(#line):equals(10)
    expect(line:sub(5, 5)):equals "N"
  end)

  it("uses colour only when it may", function()
    expect(plot.heatmap({ { 1, 2 } }, { colour = true }):find("\27[", 1, true) ~= nil):is_true()
    expect(plot.heatmap({ { 1, 2, NAN } }, { colour = false }):find("\27", 1, true)):is_nil()
  end)

  it("survives spans that overflow", function()
    expect(plot.sparkline({ -1.7e308, 1.7e308 }, { ascii = true, colour = false })):equals "_@"
  end)

  it("explains every mark of a heat map", function()
    expect(plot.heatmap({ { 0, 4 }, { NAN, -INF } }, { ascii = true, colour = false, labels = { "0", "1" } }))
      :equals "  0 | #|\n  1 |Nv|\n  0 [ .:o#] 4   N NaN   v -Inf"
    expect(plot.heatmap({ {} }, { ascii = true })):contains "no elements"
  end)

  it("draws a histogram whose longest bar is the most frequent bin", function()
    local text = plot.histogram({ edges = { 0, 1, 2 }, counts = { 1, 3 }, nonfinite = 2 }, { ascii = true, width = 30 })
    expect(text):equals "  0 | ########               1\n  1 | ###################### 3\n  2 | and 2 not finite"
    expect(function() plot.histogram { edges = { 1 }, counts = { 1 } } end):raises "one edge more"
  end)

  it("draws bars", function()
    expect(plot.bars({ "a", "bb" }, { 4, 1 }, { ascii = true, width = 20 })):equals "   a | ########### 4\n  bb | ###         1"
  end)
end)

describe("json", function()
  it("keeps numbers exact both ways", function()
    local text = json.encode { 0.1, 9007199254740992, 9007199254740993LL, 18446744073709551615ULL, -0.0, 1e300 }
    expect(text):equals "[0.1,9007199254740992,9007199254740993,18446744073709551615,-0.0,1e+300]"
    local back = json.decode(text)
    expect(back[1]):equals(0.1)
    expect(back[2]):equals(2 ^ 53)
    expect(back[3] == 9007199254740993LL and back[4] == 18446744073709551615ULL):is_true()
    expect(1 / back[5]):equals(-INF)
    expect(json.decode "-9223372036854775808" == -9223372036854775807LL - 1):is_true()
  end)

  it("writes NaN and infinities as docs/json.md has them", function()
    expect(json.encode { a = NAN, b = INF, c = -INF }):equals '{"a":"NaN","b":"Infinity","c":"-Infinity"}'
    expect(json.decode('["NaN","Infinity"]', { special = true })):equals { NAN, INF }
    expect(json.decode '["NaN"]'):equals { "NaN" }
  end)

  it("tells arrays from objects, empty ones by their mark", function()
    expect(json.encode { b = { 1, { c = true } }, a = json.array {}, d = {}, e = json.null })
      :equals '{"a":[],"b":[1,{"c":true}],"d":{},"e":null}'
    local back = json.decode '{"a":[],"d":{},"e":null}'
    expect(json.is_array(back.a)):is_true()
    expect(json.is_array(back.d)):equals(false)
    expect(back.e == json.null):is_true()
    expect(json.encode(back)):equals '{"a":[],"d":{},"e":null}'
  end)

  it("indents", function() expect(json.encode({ a = { 1 } }, { indent = 2 })):equals '{\n  "a": [\n    1\n  ]\n}' end)

  it("names the place of a mistake", function()
    expect(function() json.decode '{"a": [1,\n2,,]}' end):raises("line 2, column 3", "corrupt")
    expect(function() json.decode "" end):raises "line 1, column 1"
    expect(function() json.decode "1e999" end):raises "larger than any double"
    expect(function() json.decode_lines '{"a":1}\n\n{"b"}' end):raises "json.decode_lines: line 3, column 5"
    expect(function() json.encode { hits = { print } } end):raises ".hits[1]: a function"
    expect(function() json.encode { [1] = 1, x = 2 } end):raises "keys are all strings or exactly 1..n"
    local round = {}
    round.round = round
    expect(function() json.encode(round) end):raises "does the table contain itself"
    expect(function() json.decode(("["):rep(100000)) end):raises("json.decode", "corrupt")
    expect(function() json.decode(("["):rep(300) .. ("]"):rep(300)) end):raises "deeper than 200"
    expect(function() json.read "no/such/file.json" end):raises "no/such/file.json"
  end)

  it("replaces bytes that are not UTF-8 and escapes control characters", function()
    expect(json.encode "a\255\27"):equals '"a\239\191\189\\u001b"'
  end)
end)

describe("dtype", function()
  it("knows the edges of the float types", function()
    local half = dtype.of "float16"
    expect(half.max):equals(65504)
    expect(half.min_normal):equals(2 ^ -14)
    expect(half.min_subnormal):equals(2 ^ -24)
    expect(half.eps):equals(2 ^ -10)
    expect({ half.bits, half.digits }):equals { 16, 11 }
    expect(dtype.of("bfloat16").eps):equals(2 ^ -7)
    expect(dtype.of("Float32").digits):equals(24)
    expect(dtype.of("float64").max):equals(1.7976931348623157e308)
  end)

  it("knows the ranges of the integers", function()
    expect({ dtype.of("int8").min, dtype.of("int8").max }):equals { -128, 127 }
    expect(dtype.of("uint16").max):equals(65535)
    expect(dtype.of("bool").max):equals(1)
  end)

  it("places values", function()
    expect(dtype.place(65504, "float16")):equals "normal"
    expect(dtype.place(65536, "float16")):equals "overflow"
    expect(dtype.place(1e-5, "float16")):equals "subnormal"
    expect(dtype.place(NAN, "float16")):equals "not a number"
    expect(function() dtype.of "flaot16" end):raises "did you mean 'float16'"
  end)
end)

describe("progress", function()
  it("draws on the stream it is given and takes the line away", function()
    local written = {}
    local stream = { write = function(_, ...) for _, text in ipairs { ... } do written[#written + 1] = text end end }
    local p = progress.new { label = "layers", total = 4, stream = stream }
    p:step()
    expect(table.concat(written)):equals "\rlayers: 1 of 4 (25 %)"
    p:finish()
    p:finish()
    expect(table.concat(written)):equals("\rlayers: 1 of 4 (25 %)\r" .. (" "):rep(21) .. "\r")
  end)
end)

return test.finish()
