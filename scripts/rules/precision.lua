--- What a number format does to the values: its largest magnitude, its smallest normal, zeros that were none before.
local rule = require "msdbg.rule"

local nan, inf = 0 / 0, math.huge

local function filled(n, value, first)
  local list = {}
  for i = 1, n do list[i] = value end
  if first then list[1] = first end
  return list
end

local function with_zeros(list, n)
  for _ = 1, n do list[#list + 1] = 0 end
  return list
end

-- `dtype_min_normal > 0` holds for floating point only: 127 in an int8 is an ordinary number.

local saturation = rule {
  name     = "dtype-saturation",
  summary  = "values at the largest number of the type",
  tags     = { "precision", "overflow", "default" },
  severity = "error",
  select   = "not @constant",
  -- A single one is wrong: nothing that is computed lands exactly on 65504 unless it was cut there. Only the positive end:
  -- at the negative one are the masks of attention and the padding of a maximum (see dtype-saturation-negative).
  when     = "dtype_min_normal > 0 and any(isfinite(x)) and max(finite(x)) >= dtype_max",
  cause    = "The operator saturates: the true result left the range of the type and was clamped to its limit, without an Inf that an "
           .. "overflow check would see. On Ascend in saturation mode this is the only trace of a float16 overflow.",
  next     = "Compute this operator in float32, or lower the loss scale if it is a gradient. Look at its inputs: the first "
           .. "operator with such a value is the cause.",
  cases    = {
    { name = "65504 in float16", x = { 1, 65504 }, dtype = "float16", expect = "hit" },
    { name = "65504 in float32", x = { 1, 65504 }, expect = "clean" },
    { name = "next below in float16", x = { 1, 65472 }, dtype = "float16", expect = "clean" },
    { name = "a mask", x = { 1, -65504 }, dtype = "float16", expect = "clean" },
    { name = "127 in int8", x = { 1, 127 }, dtype = "int8", expect = "clean" },
    { name = "an Inf is another fault", x = { 1, inf }, dtype = "float16", expect = "clean" },
    { name = "next to NaN", x = { nan, 65504 }, dtype = "float16", expect = "hit" },
    { name = "empty", x = {}, shape = { 0 }, dtype = "float16", expect = "clean" },
    { name = "0-d", x = { 65504 }, shape = {}, dtype = "float16", expect = "hit" },
  },
}

local negative_saturation = rule {
  name     = "dtype-saturation-negative",
  summary  = "values at the lowest number of the type",
  tags     = { "precision", "overflow" },
  severity = "info",
  select   = "not @constant",
  when     = "dtype_min_normal > 0 and any(isfinite(x)) and min(finite(x)) <= -dtype_max",
  cause    = "Either a mask written with the lowest number of the type, which is common, or a result that was clamped there.",
  next     = "Look at the elements (t:where \"x <= -dtype_max\"): a regular pattern is a mask, scattered places are an overflow.",
  cases    = {
    { name = "float16", x = { 0, -65504 }, dtype = "float16", expect = "hit" },
    { name = "positive end", x = { 0, 65504 }, dtype = "float16", expect = "clean" },
    { name = "int8", x = { -127, -128 }, dtype = "int8", expect = "clean" },
    { name = "empty", x = {}, shape = { 0 }, dtype = "float16", expect = "clean" },
  },
}

-- The range of float16 ends where gradients usually are; the other types reach 1e-38.
local HALVES = "dtype:float16 and not @constant"

local function subnormal(name, summary, tags, select, share, cases)
  return rule {
    name     = name,
    summary  = summary,
    tags     = tags,
    severity = "warning",
    select   = select,
    params   = {
      -- Below the smallest normal number (6.1e-5 in float16) each halving costs one of the few digits, and many units flush to zero.
      -- A tail of small values is usual; where half of the tensor is there, its scale is wrong.
      limit = { type = "number", default = share, min = 0, max = 100, unit = "%", help = "more of the elements that are not zero" },
      least = { type = "integer", default = 16, min = 1, help = "tensors with fewer elements that are not zero are left alone" },
    },
    -- Zeros do not count: a ReLU makes many of them, and they lose nothing.
    when     = "dtype_min_normal > 0 and count(x != 0) >= $least and "
             .. "100 * count(x != 0 and abs(x) < dtype_min_normal) > $limit * count(x != 0)",
    cause    = "The values are too small for the type: gradients in float16 without a loss scale or with one that is too small, a "
             .. "vanishing gradient, or a scale factor that was applied twice.",
    next     = "Raise the loss scale (double it while no overflow appears), or keep this tensor in bfloat16 or float32.",
    cases    = cases,
  }
end

local half_subnormal = subnormal("float16-subnormal", "most of a float16 tensor is below its normal range",
  { "precision", "underflow", "default" }, HALVES, 50, {
    { name = "1e-6", x = filled(20, 1e-6), dtype = "float16", expect = "hit" },
    { name = "1e-3", x = filled(20, 1e-3), dtype = "float16", expect = "clean" },
    { name = "zeros", x = filled(20, 0), dtype = "float16", expect = "clean" },
    { name = "behind a ReLU", x = with_zeros(filled(20, 1e-6), 60), dtype = "float16", expect = "hit" },
    { name = "a few among zeros", x = with_zeros(filled(4, 1e-6), 60), dtype = "float16", expect = "clean" },
    { name = "few elements", x = filled(4, 1e-6), dtype = "float16", expect = "clean" },
    { name = "NaN", x = filled(20, nan), dtype = "float16", expect = "not checked" },
    { name = "empty", x = {}, shape = { 0 }, dtype = "float16", expect = "clean" },
  })

-- Of any type and with a lower limit. It reads every element of every tensor once more.
local any_subnormal = subnormal("subnormal-share", "many values are below the smallest normal number",
  { "precision", "underflow", "slow" }, "not @constant", 10, {
    { name = "1e-40 in float32", x = filled(20, 1e-40), expect = "hit" },
    { name = "1e-40 in bfloat16", x = filled(20, 1e-40), dtype = "bfloat16", expect = "hit" },
    { name = "1e-6 in float32", x = filled(20, 1e-6), expect = "clean" },
    { name = "1e-6 in float16", x = filled(20, 1e-6), dtype = "float16", expect = "hit" },
    { name = "one in twenty", x = filled(20, 1, 1e-40), expect = "clean" },
    { name = "integers", x = filled(20, 1), dtype = "int32", expect = "clean" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
  })

local function cast(name, before, after, dtype, expect, params)
  return { name = name, select = true, expect = expect, params = params, tensors = {
    { node = "Default/fc1-Dense/MatMul-op0", op = "MatMul", x = before },
    { node = "Default/fc1-Dense/Cast-op1", op = "Cast", inputs = { "Default/fc1-Dense/MatMul-op0" }, x = after, dtype = dtype } } }
end

--- The cast has the same number of elements on both sides, so the zeros on both sides say how many values were lost.
local cast_underflow = rule {
  name     = "cast-underflow",
  summary  = "a cast turned values into zero",
  tags     = { "precision", "underflow" },
  severity = "warning",
  select   = "op:Cast",
  needs    = { "zero_count" },
  params   = {
    -- Softmax tails lose some percent without harm, so this is not a default rule; gradients should lose nothing.
    limit = { type = "number", default = 10, min = 0, max = 100, unit = "%", help = "more elements lost than this are a hit" },
    least = { type = "integer", default = 16, min = 1, help = "smaller tensors are left alone" },
  },
  check    = function(t, p)
    if t.size < p.least or not t.dtype:find "float" then return nil end  -- 0.4 as an integer is 0 on purpose
    local input = t:operand(0)
    if not input or input.size ~= t.size then return nil end
    local lost = 100 * (t.stats.zero_count - input.stats.zero_count) / t.size
    if lost > p.limit then
      return { actual = lost, message = ("%.3g %% of the elements became zero in the cast to %s"):format(lost, t.dtype) }
    end
  end,
  cause    = "The values are below the smallest number of the new type (6e-8 in float16): a loss scale that is too small.",
  next     = "Raise the loss scale, or cast to bfloat16, which has the range of float32.",
  cases    = {
    cast("all lost", filled(20, 1e-9), filled(20, 0), "float16", "hit"),
    cast("a fifth lost", { 1, 1, 1, 1e-9 }, { 1, 1, 1, 0 }, "float16", "hit", { least = 4 }),
    cast("they were zero before", filled(20, 0), filled(20, 0), "float16", "clean"),
    cast("one in twenty lost", filled(20, 1, 1e-9), filled(20, 1, 0), "float16", "clean"),
    cast("to integer", filled(20, 0.4), filled(20, 0), "int32", "clean"),
    cast("few elements", { 1e-9 }, { 0 }, "float16", "clean"),
    cast("beyond the largest", filled(20, 1e9), filled(20, inf), "float16", "clean"),
    cast("NaN", filled(20, nan), filled(20, nan), "float16", "clean"),
    cast("empty", {}, {}, "float16", "clean"),
  },
}

return { saturation, negative_saturation, half_subnormal, any_subnormal, cast_underflow }
