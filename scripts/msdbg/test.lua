-- A small test library: describe, it, expect. A file that uses it ends with `return test.finish()`.
--
--   local test = require "msdbg.test"
--   test.describe("views", function()
--     test.it("count from zero", function() test.expect(v[0]):equals(1) end)
--   end)
local core = require "msdbg.core"

local abs, format = math.abs, string.format
local error, pcall, print, setmetatable, tostring, type = error, pcall, print, setmetatable, tostring, type

local M = {}

local scope, passed, failed = "", 0, 0

--- Names a group of tests.
---@param name string
---@param body fun()
function M.describe(name, body)
  local outer = scope
  scope = scope == "" and name or scope .. " " .. name
  body()
  scope = outer
end

--- One test; its name states a fact.
---@param name string
---@param body fun()
function M.it(name, body)
  local ok, why = xpcall(body, function(problem)
    return tostring(problem) .. (type(problem) == "string" and "" or "\n" .. debug.traceback("", 2))
  end)
  if ok then
    passed = passed + 1
  else
    failed = failed + 1
    print(format("FAILED  %s %s\n  %s", scope, name, why))
  end
end

local Expectation = {}
Expectation.__index = Expectation

local function fail(text, ...) error(format(text, ...), 3) end

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for key, value in pairs(a) do
    if not same(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

--- Equal; tables element by element.
function Expectation:equals(wanted)
  if not same(self.value, wanted) then fail("got %s, expected %s", tostring(self.value), tostring(wanted)) end
  return self
end

--- Within `tolerance` (relative to the expected value, default 1e-9).
function Expectation:is_near(wanted, tolerance)
  local got = self.value
  if type(got) ~= "number" or abs(got - wanted) > abs(wanted) * (tolerance or 1e-9) then
    fail("got %s, expected about %s", tostring(got), tostring(wanted))
  end
  return self
end

function Expectation:is_true()
  if not self.value then fail("got %s, expected a true value", tostring(self.value)) end
  return self
end

function Expectation:is_nil()
  if self.value ~= nil then fail("got %s, expected nil", tostring(self.value)) end
  return self
end

--- The text contains `part`, taken literally.
function Expectation:contains(part)
  if not tostring(self.value):find(part, 1, true) then fail("got %q, expected it to contain %q", tostring(self.value), part) end
  return self
end

--- The function raises an error whose text contains `part`; the error is the new value.
function Expectation:raises(part, code)
  local ok, problem = pcall(self.value)
  if ok then fail("no error, expected one with %q", part) end
  if not tostring(problem):find(part, 1, true) then fail("error %q, expected it to contain %q", tostring(problem), part) end
  local have = type(problem) == "table" and problem.code or nil
  if code and have ~= code then fail("error code %s, expected %s", tostring(have), code) end
  return M.expect(problem)
end

---@param value any
function M.expect(value) return setmetatable({ value = value }, Expectation) end

--- Prints the tally; raises when a test failed or none ran.
function M.finish()
  print(format("%d passed, %d failed", passed, failed))
  if failed > 0 or passed == 0 then core.raise("test", format("%d of %d tests failed", failed, passed + failed), true) end
end

return M
