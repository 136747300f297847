-- `#3` in a command is row 3 of the list printed last; in Lua it is `_[3]`.
local core = require "msdbg.core"
local formats = require "msdbg.format"

local format = formats.line
local pairs, tonumber, type = pairs, tonumber, type

local M = {}

-- How a row is written for a command, by the kind of its words (`complete`).
local SELECTORS = { selector = true, watch = true }
local NAMES = { tensor = true, where = true, trend = true, node = true, ["file or node"] = true }

local rows  -- nodes, tensors, hits or watchpoints by number
local listed  -- the list of the running command

--- Sets the list for `#N`: the entry at `N` is the row printed with that number.
---@param list table|userdata
function M.keep(list) rows = list end

--- The list of the last command of the program; see list_nodes and similar functions.
---@return table|userdata|nil
function M.take()
  local list = listed
  listed = nil
  return list
end

--- Called by commands of the program with the rows of their answer.
function M.list(found) listed = found end

-- Called by commands of the program with the session, then words.
-- `picked`: the nodes or tensors with a line in the table, counted from 0.
function M.list_nodes(session, selector, ranks, picked)
  local all = session:nodes(selector):filter(function(node) return core.number_in(ranks, node.rank, "ranks") end)
  listed = {}
  for index in picked:gmatch "%d+" do listed[#listed + 1] = all[tonumber(index) + 1] end
end
function M.list_hits(session) listed = session.last_result.hits end
function M.list_tensors(session, on, steps, ranks, slots, picked)
  local all = session:tensors { on = on, steps = steps, ranks = ranks, slots = slots }
  listed = {}
  for index in picked:gmatch "%d+" do listed[#listed + 1] = all[tonumber(index) + 1] end
end

local function mistake(text, ...) core.raise("fail", format(text, ...), true) end

local function range()
  local first, last
  if type(rows) == "table" then
    for number in pairs(rows) do
      if type(number) == "number" then
        if not first or number < first then first = number end
        if not last or number > last then last = number end
      end
    end
  elseif #rows > 0 then
    first, last = 1, #rows
  end
  if not first then return "it is empty" end
  return first == last and format("it has only #%d", first) or format("it has #%d to #%d", first, last)
end

local function row(number)
  if not rows then
    mistake("#%d: no list was printed yet; nodes, tensors, stats, check, origin, trend, diff, hits and watches print one", number)
  end
  local found
  if type(rows) == "table" then found = rows[number] elseif number >= 1 and number <= #rows then found = rows[number] end
  return found or mistake("#%d: the last list has no such row; %s", number, range())
end

-- The node of a row, its slot unless the row is a node, and its step and rank.
local function place_of(found)
  local class = core.class_of(found)
  if class == "node" then return found.name end
  -- The session at the prompt is A of a comparison.
  if class ~= "tensor" and found.node_a then return found.node_a, found.slot, { step = found.step_a, rank = found.rank_a } end
  return class == "tensor" and found.node.name or found.node, found.slot, found
end

-- Row `number` in the form for a command with words of this kind; nil if it takes none.
local function named(kind, number, suffix)
  if not kind then return number end  -- a command that takes numbers
  local numbers_watches = kind == "watch number"
  if not (numbers_watches or SELECTORS[kind] or NAMES[kind]) then return end
  local found = row(tonumber(number))
  local is_watch = core.class_of(found) == "watchpoint"
  if is_watch ~= numbers_watches then
    mistake(is_watch and "#%d is a watchpoint, not a node or a tensor" or "#%d is not a watchpoint; watches lists them", tonumber(number))
  end
  if is_watch then return format("%d", found.id) end
  local node, slot, place = place_of(found)
  if SELECTORS[kind] then return "=" .. node .. suffix end
  if suffix:match "^:" or not slot then return node .. suffix, place end
  return node .. ":" .. slot .. suffix, place
end

--- The command that `#3` alone stands for: the finding of that row, its node, or its tensor.
---@param number integer
---@return string
function M.command(number)
  local found = row(number)
  local class = core.class_of(found)
  if class == "watchpoint" then return "watches" end
  if class == "node" then return format("node #%d", number) end
  return format(class ~= "tensor" and found.rule and "hits %d" or "show #%d", number)
end

--- The words of a command with row numbers replaced by names. A tensor also brings its step.
---@param definition table
---@param rest string
---@param session msdbg.Session?
---@return string
function M.resolve(definition, rest, session)
  if definition.raw or not rest:find "#%d" then return rest end
  local at
  local text = (" " .. rest):gsub("(%s)#(%d+)(%S*)", function(blank, number, suffix)
    if suffix ~= "" and not suffix:match "^[:%[]" then return end
    local name, place = named(definition.complete, number, suffix)
    at = at or place
    return name and blank .. name
  end)
  for _, option in pairs(definition.options or {}) do
    local name = option[1]
    if at and session and not text:find("--" .. (name:gsub("s$", "")), 1, true) then
      local one_step = name == "step" or name == "steps" and definition.complete == "tensor" and definition.name ~= "bisect"
      if one_step and at.step and at.step ~= session.current_step then text = format("%s --step %d", text, at.step) end
      if (name == "rank" or name == "ranks") and #session.ranks > 1 then text = format("%s --rank %d", text, at.rank) end
    end
  end
  return text:sub(2)
end

return M
