local rule = require "msdbg.rule"
return rule { name = "no-cases", summary = "has no case", when = "max(x) > 1" }
