-- Rules for the tests to choose, order and run.
local rule = require "msdbg.rule"

local first = rule {
  name = "largest", summary = "largest value of a layer", tags = { "team", "slow" }, select = "op:Log",
  params = { limit = { type = "number", default = 0, min = -10, max = 10, unit = "V", help = "largest accepted" },
    mode = { type = "choice", default = "max", choices = { "max", "min" }, help = "which end" } },
  needs = { "max", "min" },
  check = function(t, p) return t.stats[p.mode] > p.limit and { actual = t.stats[p.mode] } end,
  cause = "The cause.", next = "The next step.",
  cases = {
    { name = "above", x = { -1, 2 }, expect = "hit", actual = 2 },
    { name = "at the limit", x = { 0, -1 }, expect = "clean" },
    { name = "the other end", x = { -1, 2 }, params = { mode = "min" }, expect = "clean" },
  },
}

local phases = rule {
  name = "phases", summary = "every phase reports", tags = { "team" }, after = { "largest" },
  setup = function(_, _, ctx) ctx.state.count = 0 end,
  select = function(s) return s:nodes("op:Log or op:ReLU", { optional = true }) end,
  check = function(_, _, ctx) ctx.state.count = ctx.state.count + 1 end,
  step_end = function(_, _, ctx)
    local count = ctx.state.count
    return count > 0 and { { node = count > 1 and "Log-op0" or "case", step = ctx.step, actual = count } } or nil
  end,
  finish = function(_, _, ctx) return { { node = ctx.state.count > 1 and "Log-op0" or "case", step = ctx.step, message = "the end" } } end,
  cases = { { name = "one tensor", x = { 1 }, node = "case", expect = "hit", hits = 2 } },
}

return { first, phases }
