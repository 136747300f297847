local rule = require "msdbg.rule"
return rule { name = "syntax", summary = "does not compile", when = "max(x) > 1"
