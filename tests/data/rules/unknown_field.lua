local rule = require "msdbg.rule"

return {
  rule { name = "first", summary = "fine", when = "max(x) > 0" },
  rule {
    name = "second",
    sumary = "misspelt",
    when = "max(x) > 0",
  },
}
