-- The 17 conditions of the catalogue as rules, named by their ids and built from the core's table.
local core = require "msdbg.core"
local rule = require "msdbg.rule"

local ipairs = ipairs

local M = {}

local selectors = { tensor = "@all", weight = "@weight", gradient = "@gradient", activation = "@activation" }

local nan, inf = "nan", "inf"
local change = { too_large = { x = { 2, -2 }, prev = { 1, -1 }, expect = "hit" }, same = { x = { 1, 2 }, prev = { 1, 2 } } }

local function overflow()
  return {
    { name = "NaN", x = { 1, nan }, expect = "hit" },
    { name = "Inf", x = { inf, 1 }, expect = "hit" },
    { name = "finite", x = { 1, -3e38 }, expect = "clean" },
  }
end

local function too_large()
  return {
    { name = "above", x = { 1, 4 }, params = { max_gt = 3 }, expect = "hit" },
    { name = "equal", x = { 1, 3 }, params = { max_gt = 3 }, expect = "clean" },
    { name = "NaN", x = { 4, nan }, params = { max_gt = 3 }, expect = "not checked" },
  }
end

local function too_small()
  return {
    { name = "below", x = { 1e-9, -1e-9 }, params = { abs_mean_lt = 1e-8 }, expect = "hit" },
    { name = "equal", x = { 1, -1 }, params = { abs_mean_lt = 1 }, expect = "clean" },
    { name = "Inf", x = { 0, inf }, params = { abs_mean_lt = 1 }, expect = "not checked" },
  }
end

local function range()
  local half = { range_start_inclusive = -1, range_end_inclusive = 1, range_percentage_lt = 50 }
  return {
    { name = "outside", x = { -3, 3, 0 }, params = half, expect = "hit" },
    { name = "inside", x = { -1, 1, 0 }, params = half, expect = "clean" },
    { name = "constant", x = { 2, 2 }, params = { max_min_gt = 0 }, expect = "clean" },
  }
end

local cases = {
  operator_overflow = {
    { name = "flagged", x = { 1 }, overflow = true, expect = "hit" },
    { name = "not flagged", x = { 1 }, overflow = false, expect = "clean" },
    { name = "not recorded", x = { 1 }, expect = "not checked" },
  },
  tensor_overflow = overflow(), weight_overflow = overflow(), gradient_exploding = overflow(),
  tensor_too_large = too_large(), weight_too_large = too_large(), gradient_too_large = too_large(),
  tensor_too_small = too_small(), weight_too_small = too_small(), gradient_vanishing = too_small(),
  tensor_range = range(), activation_range = range(),
  tensor_all_zero = {
    { name = "all zero", x = { 0, -0.0 }, expect = "hit" },
    { name = "half", x = { 0, 1 }, params = { zero_percentage_ge = 50 }, expect = "hit" },
    { name = "one value", x = { 0, 1 }, expect = "clean" },
  },
  weight_initialization = {
    { name = "all zero", x = { 0, 0 }, live = true, expect = "hit" },
    { name = "drawn", x = { 0.1, -0.2 }, live = true, expect = "clean" },
    { name = "a dump has no initial values", x = { 0, 0 }, expect = "not checked" },
  },
  weight_change_too_large = {
    { name = "doubled", x = change.too_large.x, prev = change.too_large.prev, expect = "hit" },
    { name = "the same", x = change.same.x, prev = change.same.prev, expect = "clean" },
    { name = "first step", x = { 1 }, expect = "not checked" },
  },
  weight_change_too_small = {
    { name = "the same", x = change.same.x, prev = change.same.prev, expect = "hit" },
    { name = "doubled", x = change.too_large.x, prev = change.too_large.prev, expect = "clean" },
  },
  weight_not_changed = {
    { name = "the same", x = change.same.x, prev = change.same.prev, expect = "hit" },
    { name = "one moved", x = { 1, 2.1 }, prev = { 1, 2 }, expect = "clean" },
  },
}

local function params_of(spec)
  local params = {}
  for _, param in ipairs(spec.params) do
    params[param.name] = {
      type = param.is_bool and "boolean" or "number", min = not param.is_bool and param.min or nil,
      max = not param.is_bool and param.max or nil,
      min_open = param.min_open or nil, unit = param.unit == "percent" and "%" or param.unit, help = param.help, optional = true,
      -- The core applies it if no other limit is given.
      fallback = param.default,
    }
  end
  return params
end

--- name -> rule, and the list in catalogue order.
---@return table[]
function M.rules()
  local list = {}
  for _, spec in ipairs(core.catalogue()) do
    local tags = { "catalogue", spec.target }
    if spec.id == "tensor_overflow" then tags[#tags + 1] = "default" end
    list[#list + 1] = rule {
      name = spec.id, abbr = spec.abbr, summary = spec.summary, tags = tags, severity = spec.severity, params = params_of(spec),
      select = selectors[spec.target], catalogue = spec.id, next = spec.advice, cases = cases[spec.id],
    }
  end
  return list
end

--- The text of the condition with the given values.
function M.when(made, values)
  local parts = { made.catalogue }
  for _, name in ipairs(rule.keys(made.params)) do
    local value = values[name]
    if value ~= nil then
      if type(value) == "boolean" then value = value and 1 or 0 end
      parts[#parts + 1] = ("%s=%.17g"):format(name, value)
    end
  end
  return table.concat(parts, " ")
end

return M
