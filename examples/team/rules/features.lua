--- A rule of an imaginary vision team, as an expression: the core evaluates it in the same pass as everything else.
local rule = require "msdbg.rule"

return rule {
  name     = "vision-dead-features",
  summary  = "most features of the backbone are zero",
  tags     = { "vision", "activation" },
  severity = "warning",
  params   = { share = { type = "number", default = 95, unit = "%", help = "share of zeros that is too large" } },
  select   = "@features",  -- defined in the team's profile
  when     = "percent(x == 0) > $share",
  cause    = "The filters before this layer respond to nothing: a learning rate that killed them, or unscaled inputs.",
  next     = "Compare with the previous step (t:show { previous = true }); lower the learning rate of the backbone.",
  cases    = {
    { name = "all zero", x = { 0, 0, 0, 0 }, expect = "hit" },
    { name = "half", x = { 0, 0, 1, 2 }, expect = "clean" },
    { name = "half, with a strict limit", x = { 0, 0, 1, 2 }, params = { share = 40 }, expect = "hit" },
    { name = "no elements", x = {}, shape = { 0 }, expect = "clean" },
  },
}
