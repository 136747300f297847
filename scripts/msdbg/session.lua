-- The Lua part of the session object.
local core = require "msdbg.core"
local watches = require "msdbg.watches"

local methods = core.members "session"

-- Live: runs the training one step at a time. After a hit in the middle of a step, its callbacks run and the step continues.
local function each_live_step(session)
  return function()
    if session.state ~= "held" then return nil end
    local before, r = session.completed_steps
    repeat
      r = session:step(1)
    until not r.held or r.completed_steps > before or not (r.reason == "hit" or r.reason == "not checked")
    if r.reason == "interrupted" then core.raise("interrupted", "interrupted", true) end
    -- If the training has ended after a step, that step is returned only if it has results: nothing else can be read.
    if r.completed_steps > before and (r.held or #r.hits > 0) then return r.step, r end
  end
end

function methods.each_step(session)
  if session.can.step then return each_live_step(session) end
  local steps, i = session.steps, 0
  return function()
    i = i + 1
    local step = steps[i]
    if step then session:goto_step(step) end
    return step
  end
end

-- Skips rules whose nodes a network does not have. Where operators are seen as they run, the first step shows them.
function methods.watch_recommended(session)
  local made = core.new_record "watches"
  local unseen = session.kind == "live" and session.info.peer.named and #session:nodes("@from_weights", { optional = true }) == 0
  for _, rule in ipairs(core.recommended_rules(session)) do
    -- Parameters are known before it: to look at one that is not there would hold each step.
    local may_come = rule.later or unseen and not rule.on:find "^@parameter"
    if may_come or #session:nodes(rule.on, { optional = true }) > 0 then
      made[#made + 1] =
        session:watch { name = rule.name, on = rule.on, when = rule.when, from_step = rule.from_step, optional = true }
    end
  end
  return made
end

-- Function conditions have no text form; the second result is the number of skipped watchpoints.
function methods.save_watches(session, path)
  local text, written, left_out = watches.lines(session)
  core.write_file(path, "-- watchpoints of " .. core.printable(session.info.short_name) .. "; s:load_watches makes them again\n" .. text)
  return written, left_out
end

methods.load_watches = watches.load

return methods
