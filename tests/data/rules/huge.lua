local rule = require "msdbg.rule"
return rule {
  name = "huge", summary = "takes all memory", select = "@all",
  check = function()
    local all = {}
    for i = 1, 1e9 do all[i] = ("x"):rep(1e6) .. i end
    return #all > 0
  end,
}
