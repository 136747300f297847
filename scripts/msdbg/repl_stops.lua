-- Commands for stops at watchpoints: once, ignoring the first ones, and with commands of the prompt.
local core = require "msdbg.core"
local formats = require "msdbg.format"
local registry = require "msdbg.repl_registry"
local watch_words = require "msdbg.watch_words"

local command, mistake, need, number = registry.command, registry.mistake, registry.need, registry.number
local format = formats.line
local error, io, ipairs, pcall, tostring, type = error, io, ipairs, pcall, tostring, type

local M = {}

command {
  name = "tbreak", also = { "tb" }, usage = "tbreak SELECTOR CONDITION [parameter=value ...] | EXPRESSION",
  summary = "live: a watchpoint for one hit; watch --once", complete = "watch", examples = { "tbreak @gradient TO" },
  run = function(session, rest)
    local s = need(session)
    local on, when = watch_words.of("tbreak", rest)
    return tostring(s:watch { on = on, when = when, once = true })
  end,
}

command {
  name = "ignore", usage = "ignore N COUNT", summary = "live: watchpoint N lets COUNT hits pass", complete = "watch number",
  details = "All tensors that hit in one place count as one hit. COUNT 0: it stops from the next hit on.", examples = { "ignore 1 10" },
  run = function(session, rest)
    local definition = registry.find "ignore"
    local id, count = rest:match "^(%S+)%s+(%S+)$"
    if not id then registry.usage(definition, "ignore: which watchpoint, and how many hits?") end
    local watch = registry.watchpoint(need(session), definition, id)
    return tostring(watch:ignore(number(definition, count, "a number of hits")))
  end,
}

-- ---- commands of a watchpoint ---------------------------------------------------------------------------------------

-- `N`, the entries after it on the first line, and the lines below it.
local function split(rest)
  local first, below = rest:match "^([^\n]*)\n?(.*)$"
  local id, entry = first:match "^%s*(%d*)%s*(.-)%s*$"
  return id, entry, below
end

command {
  name = "commands", usage = "commands [N] [ENTRY]", summary = "live: what the prompt enters when watchpoint N hits", raw = true,
  details = "Without ENTRY, the lines that follow, up to `end`; none remove the commands. Without N: the last watchpoint. A command\n"
    .. "  that runs the training ends the list, and what it stops at has its own commands.",
  complete = "watch number", examples = { "commands 1 stats @loss", "commands 1\n  stats @loss\n  continue\nend" },
  --- Whether more lines must follow.
  open = function(rest)
    local _, entry, below = split(rest)
    return entry == "" and not ("\n" .. below):match "\n%s*end%s*$"
  end,
  run = function(session, rest)
    local definition, s = registry.find "commands", need(session)
    local id, entry, below = split(rest)
    local watches, entries = s:watches(), {}
    if id == "" and #watches == 0 then mistake "commands: no watchpoint yet; add one, e.g.: watch ** TO" end
    local watch = id == "" and watches[#watches] or registry.watchpoint(s, definition, id)
    if entry ~= "" then
      entries[1] = entry
    else
      for line in below:gmatch "[^\n]+" do
        line = line:match "^%s*(.-)%s*$"
        if line ~= "" then entries[#entries + 1] = line end
      end
      entries[#entries] = nil  -- the `end`
    end
    watch:set { commands = entries }
    if #entries == 0 then return format("watch %d: no commands", watch.id) end
    return format("watch %d: %d command%s when it hits", watch.id, #entries, #entries == 1 and "" or "s")
  end,
}

local function say(output)
  if output == "" then return end
  io.write(core.visible(output), "\n")
  io.flush()
end

--- Runs the commands of the watchpoints that stopped the last entry, and of those that stop these commands. Intermediate output is
--- printed at once; returns the last output.
---@param session msdbg.Session?
---@param output string  of the entry
---@param enter fun(entry: string): string, string, integer  runs one entry: outcome, output, status
---@return string outcome
---@return string output
---@return integer status
function M.follow(session, output, enter)
  while true do
    local due = session and session.state ~= "closed" and core.due_commands(session) or {}
    if #due == 0 then return "done", output, 0 end
    local ran_on = false
    for _, entries in ipairs(due) do
      for _, entry in ipairs(entries) do
        say(output)
        local runs = core.run_count(session)
        local ok, outcome, more, status = pcall(enter, entry)
        if not ok then
          local why = outcome
          if type(why) == "table" and why.code == "interrupted" then error(why, 0) end
          mistake(format("'%s', a command of a watchpoint: %s", entry, tostring(why)))
        end
        if outcome == "incomplete" then mistake(format("'%s', a command of a watchpoint, is not finished", entry)) end
        if outcome == "exit" then return outcome, more, status end
        output = more
        ran_on = session.state == "closed" or core.run_count(session) ~= runs
        if ran_on then break end
      end
      if ran_on then break end
    end
    if not ran_on then return "done", output, 0 end
  end
end

return M
