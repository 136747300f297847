local rule = require "msdbg.rule"

return rule {
  name = "limited", summary = "a parameter has a misspelt field",
  params = { limit = { type = "number", default = 1,
    mni = 0 } },
  when = "max(x) > $limit",
}
