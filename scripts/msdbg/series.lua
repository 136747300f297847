-- Losses and metrics over steps: read from a training's output, from csv or from tables, and compared with another run.
local core = require "msdbg.core"
local options = require "msdbg.options"

local format = string.format
local ipairs, pairs, tostring, type = ipairs, pairs, tostring, type

local M = {}

core.record("series", {
  __name = "series",
  __tostring = function(series)
    local count = #series.values
    local first, last = tostring(series.steps[1]), tostring(series.steps[count])
    return format("<series %s: %d values of %s, steps %s to %s>", series.source, count, series.what, first, last)
  end,
})

core.record("series_comparison", { __name = "series_comparison", __tostring = function(found) return found.text end })

local function fail(text, ...) core.raise("invalid_argument", format(text, ...)) end

local function record(fields)
  local series = core.new_record "series"
  for key, value in pairs(fields) do series[key] = value end
  return series
end

-- { 2.3, 2.2 } or { { step = 0, value = 2.3 }, ... }
local function from_table(given)
  local made = { source = "table", what = "value", counted = false, steps = {}, values = {} }
  for i, item in ipairs(given) do
    local value, step = item, nil
    if type(item) == "table" then value, step = item.value or item.loss, item.step end
    if type(value) ~= "number" then
      fail("series.read: element %d: a number or { step =, value = } is expected, not %s", i, tostring(value))
    end
    made.counted = made.counted or step == nil
    made.steps[i], made.values[i] = step or i, value
  end
  if #made.values == 0 then fail "series.read: the table has no values" end
  for i = 2, #made.steps do
    if made.steps[i] <= made.steps[i - 1] then
      fail("series.read: step %s comes after step %s", tostring(made.steps[i]), tostring(made.steps[i - 1]))
    end
  end
  return record(made)
end

--- Reads a series from a log, from csv, or from a table of values.
---@param from string|table
---@param given? { pattern?: string, column?: string }
function M.read(from, given)
  local o = options.check("series.read", given, { pattern = "string", column = "string" })
  if type(from) == "table" then
    if from.steps and from.values then return from end
    return from_table(from)
  end
  return record(core.read_series(from, o.pattern, o.column))
end

--- Compares two series; paths and tables are read first.
---@param a string|table
---@param b string|table
---@param given? { tolerance?: number, pattern?: string, column?: string }
function M.compare(a, b, given)
  local o = options.check("series.compare", given, { tolerance = "number", pattern = "string", column = "string" })
  local reading = { pattern = o.pattern, column = o.column }
  local fields, text = core.compare_series(M.read(a, reading), M.read(b, reading), o.tolerance)
  local found = core.new_record "series_comparison"
  for key, value in pairs(fields) do found[key] = value end
  found.text = text
  return found
end

return M
