--- What the imaginary vision team checks in every convolution network: two rules for its own collection.
local rule = require "msdbg.rule"

-- An expression: the core evaluates it in the same pass as everything else.
local dead_backbone = rule {
  name     = "vision-dead-features",
  summary  = "most features of the backbone are zero",
  tags     = { "vision", "activation" },
  severity = "warning",
  params   = { share = { type = "number", default = 95, unit = "%", help = "zeros that are too many" } },
  select   = "@features",  -- defined in the team's profile
  when     = "percent(x == 0) > $share",
  cause    = "The filters in front of this layer answer to nothing: a learning rate that killed them, or inputs that are not scaled.",
  next     = "Compare with the step before (t:show { previous = true }); lower the learning rate of the backbone.",
  cases    = {
    { name = "all zero", x = { 0, 0, 0, 0 }, expect = "hit" },
    { name = "half", x = { 0, 0, 1, 2 }, expect = "clean" },
    { name = "half, with a strict limit", x = { 0, 0, 1, 2 }, params = { share = 40 }, expect = "hit" },
    { name = "no elements", x = {}, shape = { 0 }, expect = "clean" },
  },
}

-- A function that reads the finished statistics: called once per tensor, never per element.
local lopsided = rule {
  name     = "vision-lopsided-kernel",
  summary  = "a kernel whose mean is far from zero against its spread",
  tags     = { "vision", "weight" },
  severity = "info",
  params   = { limit = { type = "number", default = 1, help = "largest |mean| in standard deviations" } },
  select   = "@kernels",
  check    = function(t, p)
    local stats = t.stats
    if not stats.std or stats.std == 0 then return nil end
    local ratio = math.abs(stats.mean) / stats.std
    return ratio > p.limit and { actual = ratio } or nil
  end,
  cause    = "Initialisation or weight decay pushed the kernel to one side; it then measures brightness instead of edges.",
  next     = "Look at it with t:heatmap(), and at its gradient.",
  cases    = {
    { name = "balanced", x = { -1, 1, -1, 1 }, expect = "clean" },
    { name = "one side", x = { 1, 1.1, 0.9, 1 }, expect = "hit" },
    { name = "constant", x = { 2, 2, 2 }, expect = "clean" },
  },
}

return { dead_backbone, lopsided }
