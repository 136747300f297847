--- What recorded calls say about each other.
local rule = require "msdbg.rule"

local overwritten = rule {
  name     = "overwritten-value",
  summary  = "a value was overwritten between two calls",
  tags     = { "overflow", "default" },
  severity = "error",
  -- Only a dump that recorded calls has two records of one value.
  applies  = function(s) return s.info.layout == "P" end,
  needs    = { "count" },
  step_end = function(s, _, ctx)
    local found = {}
    for _, each in ipairs(s:overwritten { steps = ctx.step, ranks = ctx.rank }) do
      found[#found + 1] = { tensor = each.tensor, before = ("%s:%s"):format(each.before.node, each.before.slot),
        message = ("%s; it should equal %s:%s: %s"):format(each.message, each.before.node, each.before.slot, each.reason) }
    end
    return found
  end,
  cause    = "Something wrote into the memory of this tensor after it was made: an operator that writes beyond its output, memory that "
           .. "was given to another stream too early, a communication that was still running, or a call that msprobe does not record.",
  next     = "Run with synchronous launches (ASCEND_LAUNCH_BLOCKING=1): if the difference is gone, two streams share the memory. Look at "
           .. "the calls between the two and at the communication that runs beside them.",
  cases    = {
    { name = "an input that should equal an output", expect = "hit", hits = 1, tensors = {
      { node = "Functional.linear.0.forward", op = "linear", x = { 1, 2 } },
      { node = "Functional.relu.0.forward", op = "relu", slot = "input:0", x = { 1, 9 }, equals = "Functional.linear.0.forward" },
      { node = "Functional.relu.0.forward", op = "relu", x = { 1, 9 } } } },
    { name = "recorded once", expect = "clean", tensors = {
      { node = "Functional.linear.0.forward", op = "linear", x = { 1, 2 } },
      { node = "Functional.relu.0.forward", op = "relu", slot = "input:0", x = { 1, 2 } } } },
    { name = "no recorded calls", x = { 1, 2 }, select = true, expect = "clean" },
  },
}

return { overwritten }
