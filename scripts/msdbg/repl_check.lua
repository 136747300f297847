-- Commands that find faults: watchpoints, checks, and the origin.
local core = require "msdbg.core"
local follow = require "msdbg.follow"
local formats = require "msdbg.format"
local registry = require "msdbg.repl_registry"
local watch_words = require "msdbg.watch_words"
local watches = require "msdbg.watches"

local command, mistake, need, number, state = registry.command, registry.mistake, registry.need, registry.number, registry.state
local concat, format = table.concat, formats.line
local ipairs, tostring = ipairs, tostring

registry.group "what is wrong"

command {
  name = "watch", also = { "b", "w" }, usage = "watch SELECTOR CONDITION [parameter=value ...] | EXPRESSION | --recommended",
  summary = "add a watchpoint",
  details = "CONDITION is the id or the abbreviation of one (help conditions), EXPRESSION a truth value over elements (help expressions).",
  examples = { "watch ** TO", "watch @weight WCL abs_mean_update_ratio_gt=0.1", "watch @gradient percent(abs(x) > 3*std(x)) > 5" },
  complete = "watch",
  options = { { "once", "", "live: for one hit; then it is removed" }, { "from-step", "N", "live: hits before step N do not stop the training" },
    { "recommended", "", "the watchpoints that MindInsight recommends, without SELECTOR and CONDITION" } },
  run = function(session, rest, options)
    local s, definition, from = need(session), registry.find "watch", options["from-step"]
    if not options.recommended then
      local on, when = watch_words.of("watch", rest)
      from = from and number(definition, from, "a step")
      return tostring(s:watch { on = on, when = when, once = options.once and true or nil, from_step = from })
    end
    if rest ~= "" or options.once or from then registry.usage(definition, "watch: --recommended takes no other words") end
    local lines = {}
    for i, watch in ipairs(s:watch_recommended()) do lines[i] = tostring(watch) end
    return #lines > 0 and concat(lines, "\n") or "none of the recommended watchpoints names a node of this network"
  end,
}

command {
  name = "watches", usage = "watches", summary = "list the watchpoints (info b)",
  run = function(session)
    local s = need(session)
    return state.listed(watches.by_number(s), watches.list_text(s))
  end,
}

-- The watchpoints that `rest` names by number, or all.
local function named(session, definition, rest)
  if rest == "all" then return need(session):watches() end
  local found = {}
  if rest == "" then registry.usage(definition, definition.name .. ": which watchpoint?") end
  for word in rest:gmatch "%S+" do found[#found + 1] = registry.watchpoint(need(session), definition, word) end
  return found
end

local function change(name, also, summary, word, act)
  local definition
  definition = {
    name = name, also = also, usage = name .. " N ... | all", summary = summary, complete = "watch number",
    run = function(session, rest)
      local lines = {}
      local found = named(session, definition, rest)
      for i, watch in ipairs(found) do
        local id = watch.id
        act(watch)
        lines[i] = format("watch %d %s", id, word)
      end
      if rest == "all" then return format("%d %s", #found, word) end
      return concat(lines, "\n")
    end,
  }
  command(definition)
end

change("unwatch", { "delete", "d" }, "remove watchpoints", "removed", function(watch) watch:remove() end)
change("disable", nil, "keep watchpoints, but do not run them", "disabled", function(watch) watch:disable() end)
change("enable", nil, "run watchpoints again", "enabled", function(watch) watch:enable() end)

-- A recheck does not cover rules, because they have no watchpoints: run them again.
local last_words
local check = registry.find "check"
if check then
  local run = check.run
  function check.run(session, rest)
    local text = run(session, rest)
    last_words = rest
    return text
  end
end

command {
  name = "recheck", usage = "recheck", summary = "the last check again; live: on the current values",
  run = function(session)
    local s = need(session)
    if last_words and #s:watches() == 0 then return check.run(session, last_words) end
    local result = s:recheck()
    return state.listed(result.hits, tostring(result))
  end,
}

command {
  name = "hits", usage = "hits [N]", summary = "what the last check found, or one finding with its advice",
  details = "Findings are numbered in execution order; hits N shows the rule, the source line, causes and what to do next.",
  examples = { "hits", "hits 1" },
  run = function(session, rest)
    local s = need(session)
    if rest ~= "" then return watches.hits_text(s, number(registry.find "hits", rest, "the number of a finding")) end
    return state.listed(watches.hits(s), watches.hits_text(s))
  end,
}

-- ---- bt -------------------------------------------------------------------------------------------------------------

local function is_bad(tensor)
  if not tensor or tensor.problem then return false end
  local stats = tensor.stats
  return stats.nan_count + stats.pos_inf_count + stats.neg_inf_count > 0
end

-- The user's own line; a frame of an installed package only if there is no other.
local function source_text(stack)
  local found = stack[1]
  for _, frame in ipairs(stack) do
    if not frame.file:find("-packages/", 1, true) then
      found = frame
      break
    end
  end
  if not found then return "" end
  return format("%s:%d  %s", found.file:match "[^/]*$", found.line, formats.head(found.code:gsub("%s%s+#.*$", ""), 200))
end

-- Where a link of a trail was seen. An operator that was not dumped was seen at the input of a consumer.
local function tensor_at(s, place)
  local at = { step = place.step, rank = place.rank, graph = place.graph_id, execution = place.execution }
  return s:tensor(place.node .. ":" .. place.slot, at)
end

-- The lines of a trail, and the tensors behind them. Rank and step are named where the trail leaves the ones before.
local function trail_rows(s, links)
  local rows, frames, rank, step, graph = {}, {}, links[1].rank, links[1].step, links[1].graph_id
  for i, link in ipairs(links) do
    local tensor, seen = tensor_at(s, link), tensor_at(s, link.seen)
    local name = tensor and core.short_name(tensor) or link.node
    if link.step ~= step then name = format("step %d: %s", link.step, name)
    elseif link.graph_id ~= graph then name = format("graph %d: %s", link.graph_id, name) end
    if link.rank ~= rank then name = format("rank %d: %s", link.rank, name) end
    rank, step, graph = link.rank, link.step, link.graph_id
    frames[i - 1] = seen or tensor
    local what = link.not_finite and { link.not_finite, paint = "error" } or ""
    rows[i] = { format("#%d", i - 1), name, what, source_text((tensor or seen).node.stack) }
  end
  return rows, frames
end

local function end_text(trail)
  local last = trail.links[#trail.links]
  if trail.ends_at == "origin" then return format("began here: the inputs of %s are finite", last.op) end
  if trail.ends_at == "unknown" then return format("not later than here: %s", trail.reason) end
  local text = format("it came in through the %s %s", last.op == "Parameter" and "parameter" or "constant", last.node)
  return trail.reason and format("%s: %s", text, trail.reason) or text
end

local function first_output(node, step)
  for i = 0, #node.outputs - 1 do
    local value = node:output(i, { step = step })
    if is_bad(value) then return value end
  end
  return node.kind == "operator" and node:output(0, { step = step }) or node:value { step = step }
end

-- The default of bt: the last bad tensor that the fault of this step reached.
local function farthest(s)
  local found
  for _, origin in ipairs(core.origin(s, { steps = s.current_step }).origins) do
    for _, chain in ipairs(origin.chains) do
      local last
      for _, link in ipairs(chain) do
        if link.bad then last = link end
      end
      if last and (not found or #chain > found.length) then found = { link = last, length = #chain } end
    end
    found = found or { link = origin, length = 1 }
  end
  local link = found and found.link
  return link and s:tensor(link.node .. ":" .. link.slot, { step = link.step, rank = link.rank, graph = link.graph_id })
end

command {
  name = "bt", also = { "backtrace" }, usage = "bt [NODE]", summary = "how NaN or Inf came to a node, back to its origin",
  complete = "node",
  details = "#0 is NODE, the last line the operator that broke while its inputs were sound, be it in an earlier step. Without NODE:\n"
    .. "  the farthest that the fault of this step reached.",
  examples = { "bt", "bt fc2-Dense/MatMul-op0" },
  run = function(session, rest)
    local s = need(session)
    local tensor, why
    if rest == "" then
      tensor = farthest(s)
      if not tensor then return "no NaN or Inf in this step that began somewhere; bt NODE asks about one node" end
    elseif rest:find ":[%a]*:?%d+$" then
      tensor, why = s:tensor(rest)
    else
      tensor, why = first_output(s:node(rest), s.current_step)
    end
    if not tensor then mistake("bt: " .. (why or "this node has no value in the current step")) end
    if tensor.problem then mistake("bt: " .. tensor.problem) end
    if not is_bad(tensor) then return format("%s is finite in step %d: nothing to trace", core.short_name(tensor), tensor.step) end
    local trail = follow.propagation(s, tensor, { up = true }).trail
    if not trail then return format("%s: without a readable graph file it is unknown where it came from", core.short_name(tensor)) end
    local rows, frames = trail_rows(s, trail.links)
    local columns = { { title = "" }, { title = "" }, { title = "" }, { title = "", fit = "text" } }
    return state.listed(frames, core.table_text(columns, rows, core.terminal().limit) .. "\n" .. end_text(trail))
  end,
}
