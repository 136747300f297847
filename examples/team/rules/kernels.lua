--- A rule of an imaginary vision team, as a function of the finished statistics: called once per tensor, never per element.
local rule = require "msdbg.rule"

return rule {
  name     = "vision-lopsided-kernel",
  summary  = "a kernel whose mean is far from zero relative to its spread",
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
