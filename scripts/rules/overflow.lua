--- NaN and Inf, and operators that hide them.
local rule = require "msdbg.rule"

local nan, inf = 0 / 0, math.huge

local anywhere = rule {
  name     = "nan-or-inf",
  summary  = "NaN or Inf anywhere, inputs included",
  tags     = { "overflow", "thorough" },
  severity = "error",
  select   = "@all",
  -- The default rule tensor_overflow looks at outputs; the inputs show what an operator without a dumped producer was given.
  slots    = "all",
  when     = "any(not isfinite(x))",
  cause    = "Division by zero, log or root of a value that is not positive, exp of a large one, a type that is too small, bad "
           .. "samples.",
  next     = "msdbg origin names the first operator that broke while its inputs were sound.",
  cases    = {
    { name = "NaN", x = { 0, nan }, expect = "hit" },
    { name = "negative infinity", x = { -inf, 1 }, expect = "hit" },
    { name = "finite", x = { 3.4e38, -3.4e38 }, expect = "clean" },
    { name = "integers", x = { 1, 2 }, dtype = "int32", expect = "clean" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
    { name = "0-d", x = { nan }, shape = {}, expect = "hit" },
  },
}

--- Asked of operators that choose among their inputs or clip them: a comparison with NaN is false, and the NaN is gone.
local swallowed = rule {
  name     = "nan-swallowed",
  summary  = "NaN goes in and none comes out",
  tags     = { "overflow", "default" },
  severity = "error",
  select   = "op:ReLU or op:ReLUV2 or op:ReLU6 or op:Maximum or op:Minimum or op:MaxPool or op:ReduceMax or op:ReduceMin or "
           .. "op:HSwish or op:HSigmoid or op:ReluGrad or op:MaxPoolGrad",
  needs    = { "nan_count" },
  params   = {
    nan_before = { type = "integer", default = -1, min = -1, help = "NaN in the input; -1: count them" },
  },
  check    = function(t, p)
    if t.size == 0 or t.stats.nan_count > 0 then return nil end
    local count, slot = p.nan_before, 0
    if count < 0 then
      for i = 0, math.min(#t.node.inputs, 2) - 1 do
        local input = t.node:input(i, { step = t.step, execution = t.execution })
        count = input and input.stats.nan_count or 0
        slot = i
        if count > 0 then break end
      end
    end
    if count > 0 then
      return { actual = count, message = ("%d NaN in input:%d, none in the output"):format(count, slot) }
    end
  end,
  cause    = "The operator compares, and a comparison with NaN is false: some implementations of ReLU turn NaN into 0. Everything "
           .. "behind it looks healthy, the loss too, while nothing before it learns.",
  next     = "The fault is before this operator: msdbg origin finds the first NaN. Do not trust the losses of this run.",
  cases    = {
    { name = "NaN became zero", x = { 0, 0 }, params = { nan_before = 2 }, expect = "hit" },
    { name = "NaN came through", x = { nan, 0 }, params = { nan_before = 1 }, expect = "clean" },
    { name = "sound input", x = { 0, 1 }, params = { nan_before = 0 }, expect = "clean" },
    { name = "empty", x = {}, shape = { 0 }, params = { nan_before = 3 }, expect = "clean" },
    { name = "0-d", x = { 0 }, shape = {}, params = { nan_before = 1 }, expect = "hit" },
  },
}

return { anywhere, swallowed }
