local rule = require "msdbg.rule"
return rule {
  name = "wrong-return", summary = "answers with a number", select = "@all",
  check = function() return 7 end,
}
