-- Commands that move: between steps of a dump, or a training to another step or operator.
local core = require "msdbg.core"
local formats = require "msdbg.format"
local registry = require "msdbg.repl_registry"

local command, mistake, number = registry.command, registry.mistake, registry.number
local concat, format = table.concat, formats.line
local ipairs, tostring, unpack = ipairs, tostring, unpack

-- The session, if it is a live one that can run.
local function training(session, name)
  local s = registry.need(session)
  if not s.can.step and s.state ~= "closed" then
    mistake(format("%s: a %s cannot be driven, all its steps are there; goto STEP chooses one, check looks through them", name, s.kind))
  end
  return s
end

registry.group "steps; a training"

command {
  name = "goto", usage = "goto STEP", summary = "make STEP the current one; live: -1, now", complete = "step",
  run = function(session, rest)
    local s = registry.need(session)
    if rest == "now" and s.can.step then return s:goto_step() end
    s:goto_step(number(registry.find "goto", rest, "a step"))
  end,
}

-- Each rank with its steps, and what the last check found there. Ranks with the same numbers are one row.
local function ranks_text(s)
  local steps, found, rows, by_text = {}, {}, {}, {}
  for _, graph in ipairs(s.graphs) do
    local seen = steps[graph.rank] or {}
    for _, step in ipairs(graph.steps) do seen[step] = true end
    steps[graph.rank] = seen
  end
  local function sum(values)
    local all = 0
    for _, value in ipairs(values) do all = all + value end
    return format("%d", all)
  end
  for _, rank in ipairs(s.last_result and s.last_result.by_rank or {}) do
    found[rank.rank] = { sum(rank.hits), sum(rank.not_checked) }
  end
  for _, rank in ipairs(s.ranks) do
    local list = {}
    for _, step in ipairs(s.steps) do
      if (steps[rank] or {})[step] then list[#list + 1] = step end
    end
    local row = { "", #list > 0 and format("%d (%s)", #list, formats.ranges(list)) or "0", unpack(found[rank] or {}, 1, 2) }
    row[3], row[4] = row[3] or "-", row[4] or "-"
    local key = concat(row, " ", 2)
    if not by_text[key] then
      by_text[key] = { ranks = {}, row = row }
      rows[#rows + 1] = row
    end
    local ranks = by_text[key].ranks
    ranks[#ranks + 1] = rank
    row = by_text[key].row
    row[1] = formats.ranges(ranks)
  end
  local columns = { { title = "rank", align = "right", fit = "text" }, { title = "steps", fit = "text" },
    { title = "hits", align = "right" }, { title = "not checked", align = "right" } }
  local lines = { (core.table_text(columns, rows, core.terminal().limit):gsub("\n+$", "")) }
  for _, line in ipairs(core.missing_steps(s)) do lines[#lines + 1] = "  " .. line end
  if not s.last_result then lines[#lines + 1] = "  nothing was checked yet: check" end
  lines[#lines + 1] = s.current_rank and format("current: rank %d (rank all: every rank)", s.current_rank)
    or "current: all of them (rank N: one)"
  return concat(lines, "\n")
end

command {
  name = "rank", usage = "rank [N | all]", summary = "make rank N the current one, or all; alone: which there are", complete = "rank",
  details = "The current rank is the default of --ranks, and that of s:tensor, s:check and the like. replicas compares all ranks anyway.",
  examples = { "rank 2", "rank all" },
  run = function(session, rest)
    local s = registry.need(session)
    if rest == "" then return ranks_text(s) end
    s:goto_rank(rest ~= "all" and number(registry.find "rank", rest, "a rank or 'all'") or nil)
  end,
}

command {
  name = "step", also = { "s" }, usage = "step [N]", summary = "live: run N steps",
  run = function(session, rest)
    local s = training(session, "step")
    return tostring(s:step(rest ~= "" and number(registry.find "step", rest, "a number of steps") or 1))
  end,
}

command {
  name = "next", also = { "n" }, usage = "next", summary = "live: run the next operator",
  run = function(session) return tostring(training(session, "next"):next_node()) end,
}

command {
  name = "run_to", also = { "until" }, usage = "run_to NODE", summary = "live: run until NODE has run", complete = "node",
  run = function(session, rest)
    if rest == "" then registry.usage(registry.find "run_to", "run_to: which node?") end
    return tostring(training(session, "run_to"):run_to(rest))
  end,
}

command {
  name = "finish", usage = "finish", summary = "live: run to the end of this step",
  run = function(session) return tostring(training(session, "finish"):finish()) end,
}

command {
  name = "continue", also = { "c" }, usage = "continue", summary = "live: run until a hit, the end, or Ctrl-C",
  run = function(session) return tostring(training(session, "continue"):continue()) end,
}

command {
  name = "run", also = { "r" }, usage = "run [NODE]", summary = "live: continue, or run_to NODE; dump: check", complete = "node",
  details = "What `run` means to users of gdb and tfdbg: go on until a watchpoint hits. On a dump, which has all steps, that is check.",
  run = function(session, rest)
    local s = registry.need(session)
    if rest ~= "" then return registry.find("run_to").run(session, rest) end
    return registry.find(s.can.step and "continue" or "check").run(session, "", {})
  end,
}

command {
  name = "pause", usage = "pause", summary = "live: wait until the training is held again, as after Ctrl-C",
  run = function(session) return tostring(training(session, "pause"):pause()) end,
}

command {
  name = "wait", usage = "wait [SECONDS]", summary = "live: until the training is held or over",
  run = function(session, rest)
    local s = training(session, "wait")
    local state, why = s:wait { timeout = rest ~= "" and number(registry.find "wait", rest, "a number of seconds") or nil }
    return state or why
  end,
}

command {
  name = "terminate", also = { "kill" }, usage = "terminate", summary = "live: end the training",
  run = function(session) return tostring(training(session, "terminate"):terminate()) end,
}

command {
  name = "detach", usage = "detach", summary = "live: let the training continue by itself",
  run = function(session)
    training(session, "detach"):detach()
    return "the training runs on without watchpoints, as long as msdbg stays; attach holds it again, wait follows it to its end"
  end,
}

command {
  name = "attach", usage = "attach", summary = "live: take detach back; the training is held again",
  details = "At the end of the step that runs. The watchpoints are set again.",
  run = function(session) return tostring(training(session, "attach"):attach()) end,
}
