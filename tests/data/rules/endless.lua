local rule = require "msdbg.rule"
return rule {
  name = "endless", summary = "never comes back", select = "@all",
  check = function()
    while true do pcall(function() while true do local _ = 1 end end) end
  end,
}
