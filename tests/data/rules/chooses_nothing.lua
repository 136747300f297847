local rule = require "msdbg.rule"

return rule {
  name = "chooses-nothing", summary = "selects no node",
  select = function() return nil end,
  when = "max(x) > 0",
}
