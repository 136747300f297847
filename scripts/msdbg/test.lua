-- A small test library: describe, it, expect. A file that uses it ends with `return test.finish()`.
--
--   local test = require "msdbg.test"
--   test.describe("views", function()
--     test.it("count from zero", function() test.expect(v[0]):equals(1) end)
--   end)
local core = require "msdbg.core"

local abs, format, max = math.abs, string.format, math.max
local error, io, ipairs, os, pairs, pcall, print = error, io, ipairs, os, pairs, pcall, print
local rawget, setmetatable, tostring, type, xpcall = rawget, setmetatable, tostring, type, xpcall

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

local function short(value)
  if type(value) == "string" then return (format("%q", value):gsub("\\\n", "\\n")) end
  if type(value) == "number" then return value ~= value and "NaN" or core.exact_number(value) end
  return tostring(value)
end

local function step_into(path, key)
  if type(key) == "string" and key:match "^[%a_][%w_]*$" then return path .. "." .. key end
  return path .. "[" .. short(key) .. "]"
end

-- Numbers before words, each in order: equal failures print equal texts.
local function sorted_keys(a, b)
  local keys, seen = {}, {}
  for _, from in ipairs { a, b } do
    for key in pairs(from) do
      if not seen[key] then keys[#keys + 1], seen[key] = key, true end
    end
  end
  table.sort(keys, function(x, y)
    local number_x, number_y = type(x) == "number", type(y) == "number"
    if number_x ~= number_y then return number_x end
    if number_x then return x < y end
    return tostring(x) < tostring(y)
  end)
  return keys
end

-- Adds a line for each position where the two differ. `match` compares values that are not both tables. Pairs that are already
-- being compared count as equal, which handles tables that contain themselves.
local function compare(got, wanted, match, path, lines, open)
  if type(got) == "table" and type(wanted) == "table" then
    if got == wanted or (open[got] and open[got][wanted]) then return end
    open[got] = open[got] or {}
    open[got][wanted] = true
    for _, key in ipairs(sorted_keys(got, wanted)) do
      compare(rawget(got, key), rawget(wanted, key), match, step_into(path, key), lines, open)
    end
    return
  end
  if match(got, wanted) then return end
  local place = path == "" and "" or path .. ": "
  if got == nil and path ~= "" then
    lines[#lines + 1] = place .. "missing, expected " .. short(wanted)
  elseif wanted == nil and path ~= "" then
    lines[#lines + 1] = place .. "got " .. short(got) .. ", expected nothing"
  else
    lines[#lines + 1] = place .. "got " .. short(got) .. ", expected " .. short(wanted)
  end
end

local MOST_DIFFERENCES = 8

local function differences(got, wanted, match)
  local lines = {}
  compare(got, wanted, match, "", lines, {})
  if #lines == 0 then return nil end
  local more = #lines - MOST_DIFFERENCES
  for i = #lines, MOST_DIFFERENCES + 1, -1 do lines[i] = nil end
  if more > 0 then lines[#lines + 1] = format("and %d more differences", more) end
  return table.concat(lines, "\n  ")
end
M.differences = function(got, wanted) return differences(got, wanted, function(a, b) return a == b or (a ~= a and b ~= b) end) end

--- Equal; tables element by element, with every difference in the message. NaN equals NaN here.
function Expectation:equals(wanted)
  local text = M.differences(self.value, wanted)
  if text then fail("%s", text) end
  return self
end

--- Within `tolerance` (relative to the expected value, default 1e-9) or `absolute`; also for numbers in tables.
function Expectation:is_near(wanted, tolerance, absolute)
  local text = differences(self.value, wanted, function(got, want)
    if type(got) ~= "number" or type(want) ~= "number" then return got == want end
    if got == want or (got ~= got and want ~= want) then return true end
    return abs(got - want) <= max(abs(want) * (tolerance or 1e-9), absolute or 0)
  end)
  if text then fail("%s", (text:gsub("expected ", "expected about "))) end
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

--- The text contains `part` literally.
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

local function lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

--- The text equals that of a file, which MSDBG_UPDATE_GOLDEN=1 writes. Normalise paths and times before.
---@param path string
function Expectation:is_golden(path)
  local got = tostring(self.value)
  if os.getenv "MSDBG_UPDATE_GOLDEN" == "1" then
    local out, why = io.open(path, "wb")
    if not out then fail("golden file: %s", why) end
    local written = out:write(got)
    if not (out:close() and written) then fail("golden file %s cannot be written", path) end
    return self
  end
  local file = io.open(path, "rb")
  if not file then fail("no golden file %s; MSDBG_UPDATE_GOLDEN=1 writes it", path) end
  local wanted = file:read "*a"
  file:close()
  if got == wanted then return self end
  local have, want = lines_of(got), lines_of(wanted)
  for i = 1, max(#have, #want) do
    if have[i] ~= want[i] then
      fail("%s:%d: got %s, expected %s (%d lines, expected %d)", path, i, have[i] and short(have[i]) or "the end",
        want[i] and short(want[i]) or "the end", #have, #want)
    end
  end
end

---@param value any
function M.expect(value) return setmetatable({ value = value }, Expectation) end

--- Prints the totals; raises an error if a test failed or none ran.
function M.finish()
  print(format("%d passed, %d failed", passed, failed))
  if failed > 0 or passed == 0 then core.raise("test", format("%d of %d tests failed", failed, passed + failed), true) end
end

return M
