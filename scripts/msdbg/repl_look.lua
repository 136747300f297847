-- Commands that show the graph and lists of tensors.
local core = require "msdbg.core"
local formats = require "msdbg.format"
local registry = require "msdbg.repl_registry"
local watches = require "msdbg.watches"

local command, mistake, need, number, state = registry.command, registry.mistake, registry.need, registry.number, registry.state
local concat, format = table.concat, formats.line
local ipairs, pairs, tostring = ipairs, pairs, tostring

local MOST_LEVELS = 100  -- of a tree

-- The name of a node after `before` columns of a line: in full, or its shortest unique suffix if the terminal is too narrow.
local function name_within(session, name, before)
  local limit = core.terminal().limit - before
  if formats.width(name) <= limit then return name end
  local short, elided = core.short_node_name(session, name)
  return formats.width(short) <= limit and short or elided
end

local function type_text(output)
  if not output then return "" end
  return output.dtype .. (output.shape and "[" .. concat(output.shape, ",") .. "]" or "[?]")
end

local function the_node(definition, session, rest)
  if rest == "" then registry.usage(definition, definition.name .. ": which node?") end
  return need(session):node((rest:gsub(":[%a]*:?%d*$", "")))
end

registry.group "graph and lists of tensors"

command {
  name = "node", also = { "ni" }, usage = "node NODE", summary = "one node: type, inputs, outputs, attributes, source", complete = "node",
  examples = { "ni Log-op0" },
  run = function(session, rest)
    local s, n = need(session), the_node(registry.find "node", session, rest)
    local rows = { { "node", name_within(s, n.name, 9) }, { "op", format("%s, %s%s", n.op, n.kind, n.trainable and ", trainable" or "") },
      { "graph", format("%d %s, rank %d", n.graph_id, n.graph, n.rank) } }
    for i, input in ipairs(n.inputs) do
      rows[#rows + 1] = { i == 1 and "inputs" or "", format("input:%d   %s", i - 1,
        name_within(s, input.name, 32) .. ":" .. (input.output or input.slot or "?")) }
    end
    for i, output in ipairs(n.outputs) do
      rows[#rows + 1] = { i == 1 and "outputs" or "", format("output:%d  %s", i - 1, type_text(output)) }
    end
    local users = n.users
    for i = 1, math.min(#users, 8) do
      rows[#rows + 1] = { i == 1 and "users" or "", format("%s:%s takes %s", name_within(s, users[i].name, 40),
        users[i].slot, users[i].output) }
    end
    if #users > 8 then rows[#rows + 1] = { "", format("... %d more: lo %s", #users - 8, (core.short_node_name(s, n.name))) } end
    local names = {}
    for name in pairs(n.attrs) do names[#names + 1] = name end
    table.sort(names)
    for i, name in ipairs(names) do rows[#rows + 1] = { i == 1 and "attrs" or "", name .. " = " .. n.attrs[name] } end
    for i, frame in ipairs(n.stack) do rows[#rows + 1] = { i == 1 and "source" or "", tostring(frame) } end
    return registry.align(rows)
  end,
}

-- Inputs (or users) of a node as a tree of lines; `seen` prevents expanding a node twice.
local function add_tree(session, lines, node, upwards, depth, indent, seen)
  for i, edge in ipairs(upwards and node.inputs or node.users) do
    local other = edge.node
    local slot = upwards and format("input:%d", i - 1) or edge.output
    local what = other and "  " .. other.op or ""
    if other and upwards then
      local output = other.outputs[(edge.slot and tonumber(edge.slot:match "%d+") or 0) + 1]
      if output then what = what .. "  " .. type_text(output) end
    end
    local far_end = edge.slot and ":" .. edge.slot or ""
    lines[#lines + 1] = format("%s%s %s %s%s%s", indent, slot, upwards and "<-" or "->",
      name_within(session, edge.name, #indent + #slot + formats.width(far_end .. what) + 4), far_end, what)
    if depth > 1 and other then
      if seen[other.name] then lines[#lines] = lines[#lines] .. "  (above)"
      else
        seen[other.name] = true
        add_tree(session, lines, other, upwards, depth - 1, indent .. "  ", seen)
      end
    end
  end
end

local function tree(definition, upwards)
  return function(session, rest, options)
    local n = the_node(definition(), session, rest)
    local depth = options.depth and number(definition(), options.depth, "a number of levels") or 1
    if depth < 1 or depth > MOST_LEVELS then
      registry.usage(definition(), format("%s: 1 to %d levels are shown, not %s", definition().name, MOST_LEVELS, options.depth))
    end
    local s = need(session)
    local lines = { format("%s  %s", name_within(s, n.name, formats.width(n.op) + 2), n.op) }
    add_tree(s, lines, n, upwards, depth, "  ", { [n.name] = true })
    if #lines == 1 then lines[2] = upwards and "  no inputs" or "  nothing uses its output" end
    return concat(lines, "\n")
  end
end

command {
  name = "inputs", also = { "li" }, usage = "inputs NODE [--depth N]", summary = "where a node's inputs come from", complete = "node",
  options = { { "depth", "N", "levels of the tree, default 1" } },
  run = tree(function() return registry.find "inputs" end, true),
}

command {
  name = "outputs", also = { "lo" }, usage = "outputs NODE [--depth N]", summary = "what uses a node's outputs", complete = "node",
  options = { { "depth", "N", "levels of the tree, default 1" } },
  run = tree(function() return registry.find "outputs" end, false),
}

local function tensor_query(rest, options)
  return { on = rest ~= "" and rest or nil, steps = options.steps, ranks = options.ranks, slots = options.slots }
end

-- The reason why a list of tensors is empty, as far as the steps show it.
local function nothing_there(s, options)
  local asked, steps = options.steps or s.current_step, s.steps
  for _, step in ipairs(steps) do
    if asked and core.number_in(asked, step, "steps") then return "no tensors of these nodes in this step" end
  end
  return asked and format("no step %s (have %s)", asked, formats.ranges(steps)) or "no step has data"
end

-- Of tensors that ranks have in common, the first one, and the ranks.
local function joined_ranks(tensors)
  local first, ranks, places = {}, {}, {}
  for _, t in ipairs(tensors) do
    local key = concat({ t.step, t.node.name, t.slot, t.execution, t.node.op, type_text(t), t.problem or "" }, "\n")
    if not places[key] then
      places[key] = #first + 1
      first[#first + 1], ranks[#ranks + 1] = t, {}
    end
    table.insert(ranks[places[key]], t.rank)
  end
  return first, ranks
end

local query_options = { { "steps", "STEPS", "which steps, e.g. 0:10; default the current one" }, { "ranks", "RANKS", "which ranks" },
  { "slots", "SLOTS", "output, input, all, or a slot such as input:1" } }

command {
  name = "tensors", also = { "lt" }, usage = "tensors [SELECTOR] [--steps STEPS] [--slots SLOTS]",
  summary = "list tensors: name, type, size",
  complete = "selector", options = query_options,
  run = function(session, rest, options)
    local s = need(session)
    local rows, columns = {}, { { title = "", align = "right" }, { title = "step", align = "right" }, { title = "tensor", fit = "name" },
      { title = "op", fit = "text", drop = 1 }, { title = "type" }, { title = "elements", align = "right" }, { title = "", fit = "text" } }
    local first, ranks = joined_ranks(s:tensors(tensor_query(rest, options)))
    for i, t in ipairs(first) do
      local behind = t.slot == "output:0" and "" or ":" .. t.slot
      local short, elided = core.short_node_name(s, t.node.name)
      rows[i] = { format("%d", i), format("%d", t.step), { t.node.name .. behind, short .. behind, elided .. behind }, t.node.op,
        type_text(t), t.problem and "" or format("%d", t.size), t.problem and { "not readable: " .. t.problem, paint = "warning" } or "" }
      if #s.ranks > 1 then table.insert(rows[i], 3, formats.ranges(ranks[i])) end
    end
    if #rows == 0 then return nothing_there(s, options) end
    if #s.ranks > 1 then table.insert(columns, 3, { title = "ranks" }) end
    return state.listed(first, core.table_text(columns, rows, core.terminal().limit))
  end,
}

-- The progress of a training as text.
local function progress(s)
  if s.state ~= "held" then return s.state end
  if s.completed_steps == 0 and not s.current_node then return "held before its first step" end
  return format("held in step %d, %d completed", s.current_step, s.completed_steps)
end

local function describe_live(s)
  local info, peer, ranks = s.info, s.info.peer, s.info.ranks
  local program = format("%s %s, %s", peer.program, peer.version, peer.named and "device" or peer.backend)
  local lines = { format("training  %s; %s %s", progress(s), program,
    #ranks > 1 and format("%d ranks", #ranks) or peer.device) }
  if s.current_node then lines[#lines + 1] = format("node      %s", s.current_node) end
  lines[#lines + 1] = s.kind == "live" and format("address   %s, connected from %s", s.address, peer.address)
    or format("%-9s %s", s.kind, info.source)
  if #ranks > 1 then
    if s.kind == "live" then lines[#lines] = format("address   %s", s.address) end
    for _, rank in ipairs(ranks) do
      lines[#lines + 1] = format("rank %-4d %s in step %d, %d completed%s; device %s%s", rank.rank, rank.state, rank.step, rank.completed_steps,
        rank.current_node and format(", after %s", rank.current_node) or "", rank.peer.device,
        s.kind == "live" and format(", connected from %s", rank.peer.address) or "")
    end
  end
  local shared = {}
  for _, graph in ipairs(s.graphs) do
    local text = format("graph     %s, %d nodes", graph.name, graph.nodes)
    if not shared[text] then lines[#lines + 1] = text end
    shared[text] = true
  end
  local steps = s.steps
  if #steps == 1 then
    lines[#lines + 1] = format("values    of step %d", steps[1])
  elseif #steps > 1 then
    lines[#lines + 1] = format("values    of step %d; statistics back to step %d", steps[#steps], steps[1])
  end
  for _, note in ipairs(peer.notes) do lines[#lines + 1] = format("note: %s", note) end
  return concat(lines, "\n")
end

local function numbers_text(values)
  local parts = {}
  for i, value in ipairs(values) do parts[i] = format("%d", value) end
  return #parts > 0 and concat(parts, " ") or "none"
end

local subjects = {
  { names = { "watches", "watchpoints", "breakpoints" }, summary = "the watchpoints",
    text = function(s) return state.listed(watches.by_number(s), watches.list_text(s)) end },
  { names = { "steps" }, summary = "steps with data", text = function(s) return numbers_text(s.steps) end },
  { names = { "ranks" }, summary = "ranks with data", text = function(s) return numbers_text(s.ranks) end },
  { names = { "graphs" }, summary = "the graphs",
    text = function(s)
      local lines = {}
      for i, graph in ipairs(s.graphs) do lines[i] = tostring(graph) end
      return concat(lines, "\n")
    end },
  { names = { "hits" }, summary = "what the last check found",
    text = function(s) return state.listed(watches.hits(s), watches.hits_text(s)) end },
}

command {
  name = "info", also = { "i" }, usage = "info [watches | steps | ranks | graphs | hits]", summary = "describe this dump or training",
  details = "Without a word: the dump or the training. A beginning of the word is enough: `info b` lists the watchpoints, as in gdb.",
  complete = "info",
  run = function(session, rest)
    local s = need(session)
    if rest == "" then return s.can.step and describe_live(s) or core.doctor_text(s) end
    local names = {}
    for _, subject in ipairs(subjects) do
      for _, name in ipairs(subject.names) do
        if name:sub(1, #rest) == rest then return subject.text(s) end
        names[#names + 1] = name
      end
    end
    local close = core.nearest(rest, names, 1)[1]
    local hint = close and format(" (did you mean '%s'?)", close) or ""
    mistake(format("info: unknown word '%s'%s; there are %s", rest, hint, concat(names, ", ")))
  end,
}
registry.info_subjects = { "watches", "breakpoints", "steps", "ranks", "graphs", "hits" }

command {
  name = "explain", usage = "explain EXPRESSION", summary = "the cost of an expression: passes over the tensor",
  details = "Passes over the tensor, what the statistics provide, operations per element.", complete = "expression",
  run = function(_, rest)
    if rest == "" then
      registry.usage(registry.find "explain", "explain: which expression? e.g. explain percent(abs(x) > 3*std(x)) > 5")
    end
    return core.explain(rest)
  end,
}
