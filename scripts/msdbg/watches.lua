-- Watchpoints as text: lists for people, and files that recreate them.
local core = require "msdbg.core"
local formats = require "msdbg.format"

local concat, format, line = table.concat, string.format, formats.line
local ipairs, loadstring, pairs, setfenv, tostring, type, unpack = ipairs, loadstring, pairs, setfenv, tostring, type, unpack

local M = {}

local HITS = { { title = "", align = "right" }, { title = "step", align = "right" }, { title = "severity" }, { title = "rule" },
  { title = "tensor", fit = "name" }, { title = "what", fit = "text" } }

--- The watchpoints with the results of the last check.
---@param session msdbg.Session
---@return string
function M.list_text(session)
  local watches = session:watches()
  if #watches == 0 then return "no watchpoint; add one, e.g.: watch ** TO" end
  local result, found = session.last_result, {}
  if result and not result.from_rules then
    for _, hit in ipairs(result.hits) do found[hit.watch] = (found[hit.watch] or 0) + 1 end
  end
  local lines = {}
  for _, watch in ipairs(watches) do
    local n = found[watch.id]
    lines[#lines + 1] = tostring(watch) .. (n and format("; %d hit%s in the last check", n, n == 1 and "" or "s") or "")
    for _, entry in ipairs(watch.commands) do lines[#lines + 1] = "  " .. core.printable(entry) end
  end
  return concat(lines, "\n")
end

--- The watchpoints by number.
---@param session msdbg.Session
---@return table<integer, msdbg.Watch>
function M.by_number(session)
  local found = {}
  for _, watch in ipairs(session:watches()) do found[watch.id] = watch end
  return found
end

--- The findings of the last check; empty before the first one.
---@param session msdbg.Session
---@return msdbg.Hit[]
function M.hits(session) return session.last_result and session.last_result.hits or {} end

-- The lines of the user's program that a finding comes from; frames of installed packages only if there are no others.
local function source_lines(stack)
  local own = {}
  for _, frame in ipairs(stack) do
    if not frame.file:find("-packages/", 1, true) then own[#own + 1] = tostring(frame) end
  end
  return #own > 0 and own or { stack[1] and tostring(stack[1]) }
end

--- One finding with everything that its rule says about it.
---@param hit msdbg.Hit
---@param cause msdbg.Cause?  what it follows from
---@param several boolean?  there are several ranks
---@return string
function M.hit_text(hit, cause, several)
  local name = hit.rule .. (hit.abbr ~= "" and " (" .. hit.abbr .. ")" or "")
  local head = hit.severity .. "  step " .. format("%d", hit.step) .. "  rank " .. format("%d", hit.rank)
  if hit.execution > 0 then head = head .. format("  execution %d", hit.execution) end
  local rows = { { "rule", core.printable(name) .. "  " .. head },
    { "tensor", line("%s:%s  %s[%s]", hit.node, hit.slot, hit.dtype, concat(hit.shape, ",")) } }
  if hit.message ~= "" then rows[#rows + 1] = { "what", hit.message } end
  if cause then rows[#rows + 1] = { "cause", cause.sentence } end
  for i, place in ipairs(source_lines(hit.stack)) do rows[#rows + 1] = { i == 1 and "source" or "", place } end
  if hit.advice and hit.advice ~= "" then rows[#rows + 1] = { "advice", hit.advice } end
  local place = format("--step %d", hit.step) .. (several and format(" --rank %d", hit.rank) or "")
  rows[#rows + 1] = { "next", line("show %s:%s %s", hit.node, hit.slot, place) }
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = format("%-7s %s", row[1], (row[2]:gsub("%s+$", ""):gsub("[^\n]+", core.printable):gsub("\n", "\n        ")))
  end
  return concat(lines, "\n")
end

-- Findings that differ in the rank alone share a line, with the number of the first.
local function joined(hits, several_ranks)
  local lines, places = {}, {}
  for i, hit in ipairs(hits) do
    local key = several_ranks and concat({ format("%d", hit.step), hit.graph, format("%d", hit.execution), hit.node, hit.slot, hit.rule,
      format("%d", hit.watch), hit.message }, "\0") or i
    if not places[key] then
      lines[#lines + 1] = { number = i, ranks = {} }
      places[key] = #lines
    end
    table.insert(lines[places[key]].ranks, hit.rank)
  end
  -- Hits come by rank; who reads them wants the earliest step first.
  table.sort(lines, function(a, b)
    local before, behind = hits[a.number].step, hits[b.number].step
    return before < behind or before == behind and a.number < b.number
  end)
  return lines
end

--- The findings of the last check, a numbered line each; those that several ranks share are one line. With `number` only that one,
--- in full.
---@param session msdbg.Session
---@param number integer?
---@return string
function M.hits_text(session, number)
  local result = session.last_result
  if not result then return "no check yet; type check" end
  local hits = result.hits
  local note = result.interrupted and "\ninterrupted: not every tensor was checked" or ""
  if number then
    if not hits[number] then
      core.raise("fail", format("hits: no finding %d (%s)", number, #hits == 0 and "there are none" or format("have 1 to %d", #hits)), true)
    end
    local follows = hits[number].follows
    return M.hit_text(hits[number], follows and result.causes[follows], #session.ranks > 1) .. note
  end
  if #hits == 0 then return "none" .. note end
  local several = #session.ranks > 1
  local columns = { unpack(HITS) }
  if several then table.insert(columns, 2, { title = "rank", align = "right" }) end
  local rows, before = {}, nil
  for _, line_of in ipairs(joined(hits, several)) do
    local hit = hits[line_of.number]
    local behind = hit.slot == "output:0" and "" or ":" .. hit.slot
    local short, elided = core.short_node_name(session, hit.node)
    local first = not before or before.step ~= hit.step or before.rank ~= hit.rank
    before = hit
    local row = { format("%d", line_of.number), { format("%d", hit.step), paint = first and "strong" or nil },
      { hit.severity, paint = hit.severity }, hit.abbr ~= "" and hit.abbr or hit.rule,
      { hit.node .. behind, short .. behind, elided .. behind }, hit.message }
    if several then table.insert(row, 2, formats.ranges(line_of.ranks)) end
    rows[#rows + 1] = row
  end
  local more = result.total_hits > #hits and format("\n... %d more were not kept (--max-hits)", result.total_hits - #hits) or ""
  return core.table_text(columns, rows, core.terminal().limit) .. more .. note
end

local function value_text(value)
  if type(value) ~= "number" then return format("%q", tostring(value)) end
  if value ~= value then return "0/0" end
  if value == math.huge or value == -math.huge then return value > 0 and "math.huge" or "-math.huge" end
  return value % 1 == 0 and value > -2 ^ 53 and value < 2 ^ 53 and format("%.0f", value) or core.exact_number(value)
end

local function one(watch, conditions)
  local parts = { format("on = %q", watch.on) }
  if watch.name then parts[#parts + 1] = format("name = %q", watch.name) end
  parts[#parts + 1] = format("when = %q", conditions[watch.rule] and watch.rule or watch.when)
  if conditions[watch.rule] then
    local names = {}
    for name in pairs(watch.params) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do parts[#parts + 1] = format("%s = %s", name, value_text(watch.params[name])) end
  end
  if watch.slots ~= "output" then parts[#parts + 1] = format("slots = %q", watch.slots) end
  if not watch.enabled then parts[#parts + 1] = "enabled = false" end
  if watch.once then parts[#parts + 1] = "once = true" end
  if watch.ignores > 0 then parts[#parts + 1] = format("ignore = %.0f", watch.ignores) end
  if watch.from_step > 0 then parts[#parts + 1] = format("from_step = %.0f", watch.from_step) end
  if #watch.commands > 0 then
    local entries = {}
    for i, entry in ipairs(watch.commands) do entries[i] = format("%q", entry) end
    parts[#parts + 1] = "commands = { " .. concat(entries, ", ") .. " }"
  end
  return "s:watch { " .. concat(parts, ", ") .. " }"
end

--- Lines of Lua that recreate the watchpoints of a session, and how many could not be written: functions have no text form.
---@param session msdbg.Session
---@return string text
---@return integer written
---@return integer left_out
function M.lines(session)
  local conditions, lines, written, left_out = {}, {}, 0, 0
  for _, condition in ipairs(core.conditions()) do conditions[condition.id] = true end
  for _, watch in ipairs(session:watches()) do
    if type(watch.when) == "function" then
      lines[#lines + 1] = line("-- watchpoint %d%s has a function for a condition, which cannot be saved", watch.id,
        watch.name and " '" .. watch.name .. "'" or "")
      left_out = left_out + 1
    else
      lines[#lines + 1] = one(watch, conditions)
      written = written + 1
    end
  end
  return concat(lines, "\n") .. (#lines > 0 and "\n" or ""), written, left_out
end

---@param path string
---@return string
function M.read_file(path)
  local file, why = io.open(path, "r")
  if not file then core.raise("not_found", format("cannot read %s", why), true) end
  local text, problem = file:read "*a"
  file:close()
  if not text then core.raise("io_error", format("cannot read %s: %s", path, problem or "not a file"), true) end
  return text
end

--- Creates the watchpoints of a file from save_watches. The file can use only the session's `watch`.
---@param session msdbg.Session
---@param path string
---@return msdbg.Watch[]
function M.load(session, path)
  local chunk, why = loadstring(M.read_file(path), "@" .. path)
  if not chunk then core.raise("syntax", why, true) end
  local made = core.new_record "watches"
  local watch = function(_, options)
    made[#made + 1] = session:watch(options)
    return made[#made]
  end
  chunk = setfenv(chunk, { s = { watch = watch }, math = { huge = math.huge } })
  local ok, problem = pcall(chunk)
  if not ok then
    -- All or none: half a set of watchpoints could be mistaken for the whole.
    for _, one_made in ipairs(made) do one_made:remove() end
    core.raise("invalid_argument", format("load_watches: %s: %s", path, tostring(problem)), true)
  end
  return made
end

return M
