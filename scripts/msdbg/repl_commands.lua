-- The plain commands of the prompt. Each has a name, a usage line, a summary under 60 characters, and what it does:
-- run(session, rest) -> text, exit status; `session` is a function that gives the open session or nil.
local core = require "msdbg.core"
local help = require "msdbg.repl_help"

local concat, format = table.concat, string.format
local ipairs, tonumber, tostring = ipairs, tonumber, tostring

local M = {}

local list, by_name = {}, {}

local function command(definition)
  list[#list + 1] = definition
  by_name[definition.name] = definition
  for _, other in ipairs(definition.also or {}) do by_name[other] = definition end
end

local function mistake(text) core.raise("fail", text, true) end

local function usage(definition, why) mistake(format("%s; usage: %s", why, definition.usage)) end

local function need(session)
  local s = session()
  if not s then mistake "no session is open; open one with: s = msdbg.open \"PATH\", or s = msdbg.listen()" end
  return s
end

local function number(definition, text, what)
  local n = tonumber(text)
  if not n or n % 1 ~= 0 then usage(definition, format("%s: %s is expected, not '%s'", definition.name, what, text)) end
  return n
end

-- ---- looking --------------------------------------------------------------------------------------------------------

command {
  name = "nodes", usage = "nodes [SELECTOR]", summary = "list nodes", complete = "selector",
  run = function(session, rest)
    local s = need(session)
    return tostring(rest == "" and s:nodes() or s:nodes(rest))
  end,
}

command {
  name = "stats", usage = "stats [SELECTOR]", summary = "statistics of tensors in the current step", complete = "selector",
  run = function(session, rest)
    local s = need(session)
    return core.stats_text(s, s:tensors { on = rest ~= "" and rest or nil })
  end,
}

command {
  name = "show", usage = "show TENSOR", summary = "one tensor: statistics, source line, elements", complete = "selector",
  run = function(session, rest)
    if rest == "" then usage(by_name.show, "show: which tensor?") end
    local tensor, why = need(session):tensor(rest)
    if not tensor then mistake(why) end
    return core.describe_tensor(tensor)
  end,
}

-- How far a training is, in words.
local function progress(s)
  if s.state ~= "held" then return s.state end
  if s.completed_steps == 0 and not s.current_node then return "held before its first step" end
  return format("held in step %d, %d completed", s.current_step, s.completed_steps)
end

local function describe_live(s)
  local info, peer = s.info, s.info.peer
  local lines = { format("training  %s; MindSpore %s, %s %s", progress(s), peer.version, peer.backend, peer.device) }
  if s.current_node then lines[#lines + 1] = "node      " .. s.current_node end
  lines[#lines + 1] = s.kind == "live" and format("address   %s, connected from %s", s.address, peer.address)
    or format("%-9s %s", s.kind, info.source)
  for _, graph in ipairs(s.graphs) do lines[#lines + 1] = format("graph     %s, %d nodes", graph.name, graph.nodes) end
  local steps = s.steps
  if #steps == 1 then
    lines[#lines + 1] = format("values    of step %d", steps[1])
  elseif #steps > 1 then
    lines[#lines + 1] = format("values    of step %d; statistics back to step %d", steps[#steps], steps[1])
  end
  for _, note in ipairs(peer.notes) do lines[#lines + 1] = "note: " .. note end
  return concat(lines, "\n")
end

command {
  name = "info", usage = "info", summary = "what this dump or training is",
  run = function(session)
    local s = need(session)
    return s.can.step and describe_live(s) or core.doctor_text(s)
  end,
}

-- ---- checking -------------------------------------------------------------------------------------------------------

-- The condition begins at the first word that names one, an expression at the first word that calls a function; everything
-- before it is the selector.
local function split_watch(rest)
  local known = {}
  for _, condition in ipairs(core.conditions()) do
    known[condition.id:lower()] = true
    if condition.abbr ~= "" then known[condition.abbr:lower()] = true end
  end
  local from = 1
  while true do
    local first, last, word = rest:find("%s(%S+)", from)
    if not first then return end
    if known[word:lower()] or word:find "^[%a_][%w_]*%(" then return rest:sub(1, first - 1), rest:sub(first + 1) end
    from = last + 1
  end
end

command {
  name = "watch", usage = "watch SELECTOR CONDITION [parameter=value ...] | EXPRESSION", summary = "add a watchpoint", complete = "watch",
  run = function(session, rest)
    local s = need(session)
    local on, when = split_watch(rest)
    if not on then
      local ids = {}
      for _, condition in ipairs(core.conditions()) do
        ids[#ids + 1] = condition.id
        ids[#ids + 1] = condition.abbr
      end
      local last = rest:match "%s(%S+)$"
      local close = last and core.nearest(last, ids, 1)[1]
      usage(by_name.watch, "watch: no condition found" .. (close and format(" (did you mean '%s'?)", close) or ""))
    end
    return tostring(s:watch { on = on:match "^[\"'](.*)[\"']$" or on, when = when })
  end,
}

command {
  name = "explain", usage = "explain EXPRESSION", summary = "what an expression costs: passes over the tensor, statistics reused",
  run = function(_, rest)
    if rest == "" then usage(by_name.explain, "explain: which expression? e.g. explain percent(abs(x) > 3*std(x)) > 5") end
    return core.explain(rest)
  end,
}

command {
  name = "watches", usage = "watches", summary = "list the watchpoints",
  run = function(session)
    local watches = need(session):watches()
    return #watches > 0 and tostring(watches) or "no watchpoint; add one, e.g.: watch ** TO"
  end,
}

command {
  name = "unwatch", usage = "unwatch N | all", summary = "remove a watchpoint",
  run = function(session, rest)
    local watches = need(session):watches()
    if rest == "all" then
      for _, watch in ipairs(watches) do watch:remove() end
      return format("%d removed", #watches)
    end
    local id = number(by_name.unwatch, rest, "the number of a watchpoint")
    for _, watch in ipairs(watches) do
      if watch.id == id then
        watch:remove()
        return format("watch %d removed", id)
      end
    end
    local ids = {}
    for i, watch in ipairs(watches) do ids[i] = format("%d", watch.id) end
    mistake(format("unwatch: no watchpoint %d (have %s)", id, #ids > 0 and concat(ids, ", ") or "none"))
  end,
}

local function report(result) return tostring(result) end

command {
  name = "check", usage = "check [STEPS]", summary = "run the watchpoints, e.g. on steps 0:10", complete = "step",
  run = function(session, rest)
    local s = need(session)
    local note = ""
    -- Who has not said what to look for wants to know whether anything is wrong: the default rule of `msdbg check`.
    if #s:watches() == 0 then note = "no watchpoint yet, so the default: " .. tostring(s:watch { on = "@all", when = "TO" }) .. "\n" end
    return note .. report(s:check { steps = rest ~= "" and rest or nil })
  end,
}

command {
  name = "recheck", usage = "recheck", summary = "the last check again; live: the values at hand",
  run = function(session) return report(need(session):recheck()) end,
}

command {
  name = "hits", usage = "hits", summary = "what the last check found",
  run = function(session)
    local result = need(session).last_result
    if not result then return "no check yet; type check" end
    return tostring(result.hits) .. (result.interrupted and "\npartial: the check was interrupted" or "")
  end,
}

command {
  name = "origin", usage = "origin [nan | inf | CONDITION]", summary = "the first tensor that breaks while its inputs are sound",
  run = function(session, rest)
    return tostring(core.origin(need(session), { when = rest ~= "" and rest or nil }))
  end,
}

-- ---- moving and leaving ---------------------------------------------------------------------------------------------

command {
  name = "goto", usage = "goto STEP", summary = "make STEP the current one; live: -1, now", complete = "step",
  run = function(session, rest)
    local s = need(session)
    if rest == "now" and s.can.step then return s:goto_step() end
    s:goto_step(number(by_name["goto"], rest, "a step"))
  end,
}

-- ---- running a training ---------------------------------------------------------------------------------------------

command {
  name = "step", also = { "s" }, usage = "step [N]", summary = "live: run N steps (s)",
  run = function(session, rest)
    local s = need(session)
    return tostring(s:step(rest ~= "" and number(by_name.step, rest, "a number of steps") or 1))
  end,
}

command {
  name = "next", also = { "n" }, usage = "next", summary = "live: run the next operator (n)",
  run = function(session) return tostring(need(session):next_node()) end,
}

command {
  name = "run_to", also = { "r" }, usage = "run_to NODE", summary = "live: run until NODE has run (r)", complete = "selector",
  run = function(session, rest)
    if rest == "" then usage(by_name.run_to, "run_to: which node?") end
    return tostring(need(session):run_to(rest))
  end,
}

command {
  name = "continue", also = { "c" }, usage = "continue", summary = "live: run until a hit, the end, or Ctrl-C (c)",
  run = function(session) return tostring(need(session):continue()) end,
}

command {
  name = "pause", usage = "pause", summary = "live: wait until the training is held again",
  run = function(session) return tostring(need(session):pause()) end,
}

command {
  name = "wait", usage = "wait [SECONDS]", summary = "live: until the training is held or over",
  run = function(session, rest)
    local s = need(session)
    local state, why = s:wait { timeout = rest ~= "" and number(by_name.wait, rest, "a number of seconds") or nil }
    return state or why
  end,
}

command {
  name = "terminate", usage = "terminate", summary = "live: end the training",
  run = function(session) return tostring(need(session):terminate()) end,
}

command {
  name = "detach", usage = "detach", summary = "live: let the training run on by itself",
  run = function(session)
    need(session):detach()
    return "the training runs on without watchpoints, as long as msdbg stays; wait follows it to its end"
  end,
}

command {
  name = "help", usage = "help [COMMAND | TOPIC]", summary = "this list, a command, or a topic", complete = "topic",
  run = function(_, rest)
    if rest == "" then return help.overview(list) end
    if by_name[rest] then return help.command(by_name[rest]) end
    local text = help.topic(rest)
    if text then return text end
    local names = help.topics()
    for _, name in ipairs(M.names()) do names[#names + 1] = name end
    local close = core.nearest(rest, names, 1)[1]
    mistake(format("no help on '%s'%s; topics: %s", rest, close and format(" (did you mean '%s'?)", close) or "", concat(help.topics(), ", ")))
  end,
}

command {
  name = "quit", also = { "exit" }, usage = "quit [STATUS]", summary = "leave",
  run = function(_, rest) return "", rest ~= "" and number(by_name.quit, rest, "an exit status") or 0 end,
}

---@param word string
function M.find(word) return by_name[word] end

---@return string[]
function M.names()
  local names = {}
  for _, definition in ipairs(list) do
    names[#names + 1] = definition.name
    for _, other in ipairs(definition.also or {}) do names[#names + 1] = other end
  end
  return names
end

return M
