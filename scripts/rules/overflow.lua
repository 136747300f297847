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
  cause    = "Division by zero, log or root of a value that is not positive, exp of a large value, a type with too small a range, or "
           .. "bad samples.",
  next     = "msdbg origin names the first operator that broke while its inputs were good.",
  cases    = {
    { name = "NaN", x = { 0, nan }, expect = "hit" },
    { name = "negative infinity", x = { -inf, 1 }, expect = "hit" },
    { name = "finite", x = { 3.4e38, -3.4e38 }, expect = "clean" },
    { name = "integers", x = { 1, 2 }, dtype = "int32", expect = "clean" },
    { name = "empty", x = {}, shape = { 0 }, expect = "clean" },
    { name = "0-d", x = { nan }, shape = {}, expect = "hit" },
  },
}

local function relu(name, before, after, expect)
  return { name = name, select = true, expect = expect, tensors = {
    { node = "Default/fc1-Dense/MatMul-op0", op = "MatMul", x = before },
    { node = "Default/relu1-ReLU/ReLU-op1", op = "ReLU", inputs = { "Default/fc1-Dense/MatMul-op0" }, x = after } } }
end

--- Asked of operators that choose among their inputs or clip them: a comparison with NaN is false, and the NaN is gone.
local swallowed = rule {
  name     = "nan-swallowed",
  summary  = "NaN goes in and none comes out",
  tags     = { "overflow", "default" },
  severity = "error",
  select   = "op:ReLU or op:ReLUV2 or op:ReLU6 or op:Maximum or op:Minimum or op:MaxPool or op:ReduceMax or op:ReduceMin or "
           .. "op:HSwish or op:HSigmoid or op:ReluGrad or op:MaxPoolGrad or op:*ReluFusion",
  needs    = { "nan_count", "count" },
  operand_has = "nan_count",
  check    = function(t)
    if t.size == 0 or t.stats.nan_count > 0 then return nil end
    for i = 0, 1 do
      local input = t:operand(i)
      local count = input and input.stats.nan_count or 0
      if count > 0 then return { actual = count, message = ("%d NaN in input:%d, none in the output"):format(count, i) } end
    end
  end,
  cause    = "The operator compares, and a comparison with NaN is false: some implementations of ReLU turn NaN into 0. Everything "
           .. "after it looks healthy, including the loss, while nothing before it learns.",
  next     = "The fault is before this operator: msdbg origin finds the first NaN. Do not trust the losses of this run.",
  cases    = {
    relu("NaN became zero", { nan, nan }, { 0, 0 }, "hit"),
    relu("one NaN became zero", { nan, 1 }, { 0, 1 }, "hit"),
    relu("NaN came through", { nan, -1 }, { nan, 0 }, "clean"),
    relu("sound input", { -1, 1 }, { 0, 1 }, "clean"),
    relu("Inf is not NaN", { -inf, 1 }, { 0, 1 }, "clean"),
    relu("empty", {}, {}, "clean"),
    { name = "in a fused operator", select = true, expect = "hit", tensors = {
      { node = "Default/log", op = "Log", x = { nan, 1 } },
      { node = "Default/fc", op = "MatMulBiasAddReluFusion", inputs = { "Default/log" }, x = { 0, 0 } } } },
    { name = "without the input", op = "ReLU", x = { 0, 0 }, select = true, expect = "clean" },
    { name = "0-d", select = true, expect = "hit", tensors = {
      { node = "Default/fc1", op = "MatMul", x = nan, shape = {} },
      { node = "Default/relu", op = "ReLU", inputs = { "Default/fc1" }, x = 0, shape = {} } } },
  },
}

return { anywhere, swallowed }
