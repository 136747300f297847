-- Breaks where it is called although no operand has NaN.
local rule = require "msdbg.rule"

return rule {
  name = "fed", summary = "an operand has NaN", operand_has = "nan_count",
  check = function(t)
    for i = 0, #t.node.inputs - 1 do
      local operand = t:operand(i)
      if operand and operand.stats.nan_count > 0 then return true end
    end
    error "called without NaN in an operand"
  end,
}
