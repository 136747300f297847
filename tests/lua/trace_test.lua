-- Hot loops over views are compiled: a loop trace, and nothing that the compiler cannot handle.
local msdbg = require "msdbg"
local test = require "msdbg.test"
local describe, expect, it = test.describe, test.expect, test.it

local data = ... .. "/dumps/"

-- The hot counter of a loop or function depends on its address. A function that shares a counter with a loop may be recorded first,
-- by itself, and abandoned where it returns: that only shows where recording started, nothing about the code.
local began_inside = "NYI: return to lower frame"

-- The loops compiled while `body` runs, and what the compiler could not handle in it.
local function traced(body)
  local loops, aborts = 0, {}
  local vmdef = require "jit.vmdef"
  local info = require("jit.util").traceinfo
  local function on_trace(what, number, _, _, code, reason)
    if what == "stop" then
      if info(number).linktype == "loop" then loops = loops + 1 end
    elseif what == "abort" then
      local message = type(code) == "number" and vmdef.traceerr[code]:format(tostring(reason)) or tostring(code)
      if message:find("NYI", 1, true) and message ~= began_inside then aborts[#aborts + 1] = message end
    end
  end
  jit.flush()
  jit.opt.start("hotloop=5", "hotexit=2")
  jit.attach(on_trace, "trace")
  body()
  jit.attach(on_trace)
  return loops, table.concat(aborts, "; ")
end

-- One long loop, also over a small tensor: nested short ones would be unrolled instead.
local function sum(v)
  local total, n = 0, v.n
  for i = 0, 2000 do total = total + v[i % n] end
  return total
end

describe("a loop over a view", function()
  for _, dtype in ipairs { "float32", "float64", "int32", "uint8", "bool", "float16", "bfloat16", "int64" } do
    it("of " .. dtype .. " is compiled", function()
      local s = msdbg.open(data .. "types-2.7.1")
      local view
      for _, t in ipairs(s:tensors { steps = "all" }) do
        if t.dtype == dtype and t.size >= 4 then view = t:view() break end
      end
      if not view then error("no tensor of type " .. dtype) end
      local loops, aborts = traced(function() sum(view) end)
      expect(loops > 0):is_true()
      expect(aborts):equals("")
    end)
  end

  it("with a predicate in Lua is compiled", function()
    local t = msdbg.open(data .. "lenet-2.7.1-ok"):tensor "conv1-Conv2d/Conv2D-op0:0"
    local loops, aborts = traced(function() t:where(function(x) return x > 1e9 end) end)
    expect(loops > 0):is_true()
    expect(aborts):equals("")
  end)
end)

return test.finish()
