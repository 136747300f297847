-- Commands about the prompt itself: display, command files, help, leaving.
local core = require "msdbg.core"
local help = require "msdbg.repl_help"
local registry = require "msdbg.repl_registry"
local watches = require "msdbg.watches"

local command, mistake, number, state = registry.command, registry.mistake, registry.number, registry.state
local concat, format = table.concat, string.format
local error, io, ipairs, pcall, rawset, tostring, type = error, io, ipairs, pcall, rawset, tostring, type

local DEEPEST_SOURCE = 20

local function count_text(n, noun) return format("%d %s%s", n, noun, n == 1 and "" or "s") end

registry.group "the prompt"

command {
  name = "open", usage = "open PATH", summary = "open a dump, checkpoint or recording as s", complete = "file",
  examples = { "open dumps/lenet" },
  run = function(session, rest)
    if rest == "" then registry.usage(registry.find "open", "open: which file or directory?") end
    local before = session()
    if before and before.kind == "live" and (before.state == "held" or before.state == "running") then
      mistake "open: s is a training that waits for msdbg; detach or terminate it first"
    end
    rawset(state.env, "s", core.open(rest))
    return tostring(session())
  end,
}

command {
  name = "close", usage = "close", summary = "close the session",
  run = function(session)
    registry.need(session):close()
    rawset(state.env, "s", nil)
    rawset(state.globals, "s", nil)
  end,
}

command {
  name = "p", also = { "print" }, usage = "p EXPRESSION", summary = "print a Lua expression, as without the p",
  complete = "lua", raw = true,
  run = function(_, rest)
    if rest == "" then registry.usage(registry.find "p", "p: which expression?") end
    return state.evaluate(rest, true)
  end,
}

-- ---- display --------------------------------------------------------------------------------------------------------

local function display_line(display)
  local ok, text = pcall(state.evaluate, display.text)
  if not ok then text = "error: " .. tostring(text) end
  text = text == "" and "nil" or text
  return format("%d: %s%s%s", display.id, display.text, text:find "\n" and "\n" or " = ", text)
end

--- The displayed values, one per line, or "". Called after each step.
function state.display_text()
  local lines = {}
  for i, display in ipairs(state.displays) do lines[i] = display_line(display) end
  return concat(lines, "\n")
end

command {
  name = "display", usage = "display [EXPRESSION | COMMAND]", summary = "show a value now and after each step", complete = "lua",
  raw = true,
  details = "Steps are those of a training, and goto and each_step on a dump. Without an expression: all of them now.",
  examples = { "display s:tensor(\"fc1.weight\").stats.abs_mean", "display stats @loss" },
  run = function(_, rest)
    if rest == "" then
      local text = state.display_text()
      return text ~= "" and text or "nothing is displayed; e.g. display s:tensor(\"fc1.weight\").stats.abs_mean"
    end
    local entered = state.split_command(rest)
    if entered and entered.group == registry.find("step").group then
      mistake(format("display: '%s' would move the session each time it is shown; display shows values", entered.name))
    end
    state.evaluate(rest)  -- report a mistake now, before anything is kept
    local display = { id = state.next_display, text = rest }
    state.next_display = state.next_display + 1
    state.displays[#state.displays + 1] = display
    return display_line(display)
  end,
}

command {
  name = "undisplay", usage = "undisplay N | all", summary = "stop displaying a value",
  run = function(_, rest)
    if rest == "all" then
      local count = #state.displays
      for i = count, 1, -1 do state.displays[i] = nil end
      return format("%d removed", count)
    end
    local id = number(registry.find "undisplay", rest, "the number of a display")
    local ids = {}
    for i, display in ipairs(state.displays) do
      if display.id == id then
        table.remove(state.displays, i)
        return format("display %d removed", id)
      end
      ids[i] = format("%d", display.id)
    end
    mistake(format("undisplay: no display %d (have %s)", id, #ids > 0 and concat(ids, ", ") or "none"))
  end,
}

-- ---- files of commands ----------------------------------------------------------------------------------------------

command {
  name = "save", usage = "save FILE [--entries]", summary = "write watchpoints and displays, or this session's entries",
  complete = "file",
  details = "The file is for source. With --entries: everything that was entered here and worked, in order.",
  options = { { "entries", "", "the entries typed here instead" } }, examples = { "save hunt.msdbg", "save all.msdbg --entries" },
  run = function(session, rest, options)
    if rest == "" then registry.usage(registry.find "save", "save: to which file?") end
    if options.entries then
      core.write_file(rest, "-- entries of an msdbg prompt; `source` enters them again\n" .. concat(state.entries, "\n") .. "\n")
      return format("%d entr%s written to %s", #state.entries, #state.entries == 1 and "y" or "ies", rest)
    end
    local s = registry.need(session)
    local text, written, left_out = watches.lines(s)
    for _, display in ipairs(state.displays) do text = text .. "display " .. display.text .. "\n" end
    core.write_file(rest,
      format("-- watchpoints and displays of an msdbg prompt (%s); `source` makes them again\n%s", core.printable(s.info.short_name), text))
    local note = left_out > 0 and format("; %d left out: a function cannot be saved", left_out) or ""
    return format("%s and %s written to %s%s", count_text(written, "watchpoint"), count_text(#state.displays, "display"), rest, note)
  end,
}

local entered = {}     -- the files that are being read, the outermost first
local located = false  -- the error that is being raised already names its file

-- Runs the lines of a file as if they were typed. The first mistake ends it and names its own line, once, but not the lines of
-- files that sourced this one.
local function source(path)
  local text = watches.read_file(path)
  local entry, first = nil, 0
  local number_of_line = 0
  for line in (text:gsub("\r\n", "\n") .. (text:match "\n$" and "" or "\n")):gmatch "(.-)\n" do
    number_of_line = number_of_line + 1
    if not entry then first = number_of_line end
    local whole = entry and entry .. "\n" .. line or line
    local ok, outcome, output, status = pcall(state.enter, whole)
    if not ok then
      if type(outcome) == "table" and outcome.code == "interrupted" then error(outcome, 0) end
      if located then error(outcome, 0) end
      located = true
      core.raise("fail", format("%s:%d: %s", path, first, tostring(outcome)), true)
    end
    located = false
    if outcome == "exit" then return status end
    if output ~= "" then
      io.write(core.visible(output), "\n")
      io.flush()
    end
    entry = outcome == "incomplete" and whole or nil
  end
  located = entry ~= nil
  if entry then core.raise("syntax", format("%s:%d: an open block, bracket or string at the end of the file", path, first), true) end
end

command {
  name = "source", usage = "source FILE", summary = "enter the lines of a file: commands and Lua", complete = "file",
  details = "Stops at the first mistake. A file may hold what `save` wrote, and may source others.",
  run = function(_, rest)
    if rest == "" then registry.usage(registry.find "source", "source: which file?") end
    for i, path in ipairs(entered) do
      if path == rest then
        mistake(i == #entered and format("source: %s would enter itself without end", rest)
          or format("source: %s is being entered already: %s", rest, concat(entered, " sources ", i)))
      end
    end
    if #entered >= DEEPEST_SOURCE then mistake(format("source: %s: not entered, %d files source each other", rest, DEEPEST_SOURCE)) end
    if #entered == 0 then located = false end
    entered[#entered + 1] = rest
    local ok, result = pcall(source, rest)
    entered[#entered] = nil
    if not ok then error(result, 0) end
    return "", result
  end,
}

command {
  name = "set", usage = "set pager on | off", summary = "whether long output goes through a pager",
  run = function(_, rest)
    local name, value = rest:match "^(%S+)%s+(%S+)$"
    if rest == "" or rest == "pager" then return format("pager %s", core.pager() and "on" or "off") end
    if name ~= "pager" or value ~= "on" and value ~= "off" then
      registry.usage(registry.find "set", format("set: '%s' is not known", rest))
    end
    core.pager(value == "on")
  end,
}

-- ---- help and leaving -----------------------------------------------------------------------------------------------

command {
  name = "help", also = { "h" }, usage = "help [COMMAND | TOPIC | NAME]", summary = "this list, a command, a topic, a library name",
  complete = "topic", examples = { "help watch", "help selectors", "help session.step", "help tensor" },
  run = function(_, rest)
    if rest == "" then return help.overview() end
    return help.about(rest)
  end,
}

command {
  name = "apropos", usage = "apropos WORD ...", summary = "search help, conditions and library for words", examples = { "apropos nan" },
  run = function(_, rest)
    if rest == "" then registry.usage(registry.find "apropos", "apropos: which word?") end
    return help.apropos(rest)
  end,
}

command {
  name = "quit", also = { "exit", "q" }, usage = "quit [STATUS]", summary = "leave (Ctrl-D)",
  run = function(_, rest)
    local status = rest ~= "" and number(registry.find "quit", rest, "an exit status") or 0
    if status < 0 or status > 255 then registry.usage(registry.find "quit", format("quit: 0 to 255 is expected, not %d", status)) end
    return "", status
  end,
}
