local rule = require "msdbg.rule"
return rule {
  name = "runtime", summary = "an error in check", select = "@all",
  check = function(t)
    return t.stats.max + nil
  end,
}
