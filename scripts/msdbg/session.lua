-- The part of the session object that is written in Lua.
local core = require "msdbg.core"

local methods = core.members "session"

function methods.each_step(session)
  local steps, i = session.steps, 0
  return function()
    i = i + 1
    local step = steps[i]
    if step then session:goto_step(step) end
    return step
  end
end

return methods
