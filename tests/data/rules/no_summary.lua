local rule = require "msdbg.rule"

return rule {
  name = "silent",
  when = "max(x) > 0",
}
