-- Names in the prompt's tables at 80 columns can be pasted into Lua: s:node, s:tensor and selectors.
local ffi = require "ffi"
local msdbg = require "msdbg"
local core = require "msdbg.core"
local watches = require "msdbg.watches"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

ffi.cdef "int setenv(const char* name, const char* value, int overwrite);"
ffi.C.setenv("MSDBG_WIDTH", "80", 1)

local data = ... .. "/dumps/"

-- The words of a table's column, row by row.
local function column(text, title)
  local lines, words = {}, {}
  for line in text:gmatch "[^\n]+" do
    expect(core.width(line) <= 80):equals(true)
    lines[#lines + 1] = line
  end
  local from = lines[1]:find(title, 1, true)
  for i = 2, #lines do
    local word = lines[i]:sub(from):match "^%S+"
    if word and lines[i]:sub(1, from - 1):find "%S" then words[#words + 1] = word end
  end
  return words
end

describe("names in 80 columns", function()
  it("of hits", function()
    local s = msdbg.open(data .. "lenet-2.7.1-explode")
    local hits = s:check({ rules = "default" }).hits
    local names = column(watches.hits_text(s), "tensor")
    expect(#names):equals(#hits)
    for i, hit in ipairs(hits) do
      expect(s:tensor(names[i], { step = hit.step }).node.name):equals(hit.node)
      expect(s:node(names[i]).name):equals(hit.node)
      expect(#s:nodes(names[i])):equals(1)
    end
  end)

  it("of a table with names of any kind", function()
    local tables = require "msdbg.table"
    local s = msdbg.open(data .. "lenet-2.7.1-lognan")
    local rows = tables.new { { "node", fit = "name" }, "remark" }
    for node in s:nodes("Dense/MatMul-op0"):each() do rows:add(node.name, ("x"):rep(40)) end
    for _, name in ipairs(column(rows:text(), "node")) do expect(s:node(name).op):equals "MatMul" end
  end)
end)

return test.finish()
