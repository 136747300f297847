-- Pictures of one tensor as text: elements with the previous value, heat map, histogram, sparkline over steps. The methods
-- t:show{}, t:heatmap{}, t:hist{} and t:spark() print the results of these functions.
local core = require "msdbg.core"
local formats = require "msdbg.format"
local options = require "msdbg.options"
local plot = require "msdbg.plot"
local steps = require "msdbg.steps"
local tables = require "msdbg.table"

local abs, concat, floor, format, max, min = math.abs, table.concat, math.floor, formats.line, math.max, math.min
local ipairs, pairs, pcall, tostring, type = ipairs, pairs, pcall, tostring, type

local M = {}

local HUGE = math.huge

local function refuse(text, ...) core.raise("invalid_argument", format(text, ...), true) end

local function part_of(tensor, text) return text and tensor:slice(text) or tensor end

local function coordinates(index, shape)
  local place = {}
  for axis = #shape, 1, -1 do
    place[axis] = format("%d", index % shape[axis])
    index = floor(index / shape[axis])
  end
  return "[" .. concat(place, ",") .. "]"
end

-- NaN and infinities first, then the largest magnitudes, then the order of the elements.
local function weight(value)
  if value == nil then return -1 end
  if value ~= value then return HUGE end
  return abs(value)
end

--- The order of the shown rows: by position, or the `limit` worst by a column.
local function chosen(values, before, n, o, limit)
  local by = o.sort or "place"
  local indices = {}
  if by == "place" then
    local head = n <= limit and n or floor((limit + 1) / 2)
    for i = 0, head - 1 do indices[#indices + 1] = i end
    local gap = n > limit and #indices or nil
    for i = max(head, n - (limit - head)), n - 1 do indices[#indices + 1] = i end
    return indices, gap
  end
  -- Only `limit` rows are kept while all elements are read: a large tensor does not become a large table.
  local keys, least = {}, nil
  for i = 0, n - 1 do
    local value, old = values[i], before[i]
    local key = by == "value" and weight(value) or weight(value == old and 0 or value - old)
    if #indices < limit or key > least then
      local at = #indices + 1
      while at > 1 and keys[at - 1] < key do at = at - 1 end
      table.insert(indices, at, i)
      table.insert(keys, at, key)
      if #indices > limit then indices[#indices], keys[#keys] = nil, nil end
      least = keys[#keys]
    end
  end
  return indices, nil
end

-- The text for `previous`: nil and the reason if it is missing.
local function earlier(tensor, text)
  local before, why = tensor:previous()
  if not before then return nil, why end
  local ok, found = pcall(part_of, before, text)
  if not ok then return nil, type(found) == "table" and found.message or tostring(found) end
  return found
end

local function difference_table(tensor, before, o)
  local now, old = tensor:view(), before:view()
  if now.n ~= old.n then
    return format("  previous value of step %d has %d elements, this one %d: they cannot be compared", before.step, old.n, now.n)
  end
  if now.n == 0 then return "  no elements" end
  local shape = tensor.shape
  local limit = options.integer("show", o, "rows", 1, 100000, 20)
  local indices, gap = chosen(now, old, now.n, o, limit)
  local made = tables.new { { "element", align = "left" }, { "value", align = "right" },
    { format("step %d", before.step), align = "right" },
    { "difference", align = "right" }, { "relative", align = "right" } }
  for at, i in ipairs(indices) do
    if gap and at == gap + 1 then made:add(format("... %d more", now.n - #indices)) end
    local value, was = now[i], old[i]
    local difference = value - was
    local share = was ~= 0 and difference / abs(was) or nil
    local function text(x) return formats.number(x, 6) end
    made:add(coordinates(i, shape), text(value), text(was), value == was and "0" or text(difference),
      share and share == share and abs(share) < HUGE and format("%+.3g %%", share * 100) or "")
  end
  local changed, bad = 0, 0
  for i = 0, now.n - 1 do
    local value, was = now[i], old[i]
    if value ~= value or was ~= was then bad = bad + 1 elseif value ~= was then changed = changed + 1 end
  end
  local text = "  " .. made:text { width = HUGE }:gsub("\n", "\n  ")
  return text .. format("\n  %d of %d elements changed%s", changed, now.n, bad > 0 and format(", %d more are or were NaN", bad) or "")
end

--- The output of `show`: name, source line, statistics and elements. `slice` selects a part ("0,:,2:5"), `previous` adds the value
--- of the previous step to each element, the largest differences first with sort = "difference" (or the largest values: "value").
---@param tensor msdbg.Tensor
---@param given? { rows?: integer, slice?: string, previous?: boolean, sort?: "place"|"difference"|"value" }
---@return string
function M.show(tensor, given)
  local o = options.check("show", given,
    { rows = "number", slice = "string", previous = "boolean", sort = { "place", "difference", "value" } })
  if o.sort and not o.previous then refuse "show: option 'sort' goes with previous = true; t:worst(k) lists the largest elements" end
  local part = part_of(tensor, o.slice)
  local lines = {}
  local function add(name, value)
    if value and value ~= "" then lines[#lines + 1] = format("%-10s %s", name, value) end
  end
  lines[1] = tostring(part)
  add("node", tensor.node.name)
  local frame = tensor.node.stack[1]
  add("source", frame and tostring(frame))
  local line, why = core.stats_line(part)
  add("statistics", line or why)
  add("note", tensor.note)
  local before, none
  if o.previous then
    before, none = earlier(tensor, o.slice)
    if before then
      local told, problem = core.stats_line(before)
      add("previous", format("step %d: %s", before.step, told or problem))
      local ok, ratio = pcall(part.change_ratio, part, before)
      if ok and ratio then add("change", format("%s of the mean magnitude", formats.number(ratio))) end
    else
      add("previous", none)
    end
  end
  if before then
    local ok, text = pcall(difference_table, part, before, o)
    lines[#lines + 1] = ok and text or format("%-10s %s", "elements", type(text) == "table" and text.message or tostring(text))
  else
    local elements, reason = core.elements_text(part, o.rows)
    if elements then lines[#lines + 1] = elements elseif reason ~= why then add("elements", reason) end
  end
  return concat(lines, "\n")
end

-- The slice text that leaves two axes, and whether these are swapped. Other axes are cut at index 0.
local function two_axes(shape, o)
  local rank = #shape
  local rows, columns = rank - 1, rank
  if o.axes then
    rows, columns = o.axes[1], o.axes[2]
    for i, axis in ipairs { rows or false, columns or false } do
      if type(axis) ~= "number" or axis % 1 ~= 0 or axis < -rank or axis >= rank then
        refuse("heatmap: option 'axes': two axes from 0 to %d are expected, here the %s is %s", rank - 1, i == 1 and "first" or "second",
          tostring(axis))
      end
    end
    rows, columns = rows % rank + 1, columns % rank + 1
    if rows == columns then refuse "heatmap: option 'axes' names one axis twice" end
  end
  local parts = {}
  for axis = 1, rank do parts[axis] = (axis == rows or axis == columns) and ":" or "0" end
  return concat(parts, ","), rows > columns
end

-- A cell shows one value of a block of elements: non-finite ones win, then the largest magnitude.
local function stronger(value, found)
  if found == false or value ~= value then return true end
  return found == found and abs(value) > abs(found)
end

local function grid(view, height, width, transposed, most_rows, most_columns)
  local rows, columns = transposed and width or height, transposed and height or width
  local down, across = math.ceil(rows / most_rows), math.ceil(columns / most_columns)
  local cells = {}
  for r = 0, math.ceil(rows / down) - 1 do
    local line = {}
    for c = 0, math.ceil(columns / across) - 1 do
      local found = false
      for i = r * down, min(rows, (r + 1) * down) - 1 do
        for j = c * across, min(columns, (c + 1) * across) - 1 do
          local value = view[transposed and j * width + i or i * width + j]
          if stronger(value, found) then found = value end
        end
      end
      line[c + 1] = found
    end
    cells[r + 1] = line
  end
  return cells, down, across
end

--- A two-dimensional slice as shades; a larger one is condensed: each cell shows its largest magnitude, and NaN and infinities
--- always win. Without `slice`: the last two axes (or `axes`, counted from 0: the first runs down) at index 0 of the others.
---@param tensor msdbg.Tensor
---@param given? msdbg.HeatmapOptions
---@return string
function M.heatmap(tensor, given)
  local o = options.check("heatmap", given, { slice = "string", axes = "table", rows = "number", width = "number", min = "number",
    max = "number", ascii = "boolean", colour = "boolean" })
  local part = part_of(tensor, o.slice)
  local cut, transposed
  if #part.shape > 2 or (o.axes and #part.shape == 2) then
    cut, transposed = two_axes(part.shape, o)
    if #part.shape > 2 then part = part:slice(cut) end
  elseif o.axes then
    refuse("heatmap: option 'axes' needs a tensor of two axes or more, this one has %d", #part.shape)
  end
  local shape = part.shape
  local height, width = #shape == 2 and shape[1] or 1, shape[#shape] or 1
  local head = tostring(part)
  if height * width == 0 then return head .. "\n  no elements" end
  local view = part:view()
  local label = #tostring(max(height, width)) + 5
  local most_columns = max(1, options.integer("heatmap", o, "width", 10, 10000, core.terminal().width) - label)
  local cells, down, across = grid(view, height, width, transposed, options.integer("heatmap", o, "rows", 1, 10000, 32), most_columns)
  local labels = {}
  for r = 1, #cells do labels[r] = format("%d", (r - 1) * down) end
  local picture = plot.heatmap(cells, { labels = labels, min = o.min, max = o.max, ascii = o.ascii, colour = o.colour })
  local notes = { format("%d x %d", transposed and width or height, transposed and height or width) }
  if down > 1 or across > 1 then notes[#notes + 1] = format("a cell is %d x %d elements, its largest magnitude", down, across) end
  return format("%s\n  %s\n", head, concat(notes, "; ")) .. picture
end

--- The histogram as bars; the options are those of t:histogram{}, and `slice`.
---@param tensor msdbg.Tensor
---@param given? msdbg.HistogramOptions
---@return string
function M.hist(tensor, given)
  local o = {}
  for name, value in pairs(given or o) do o[name] = value end
  local part = part_of(tensor, o.slice)
  o.slice = nil
  local terminal = core.terminal()
  o.width = o.width or min(terminal.width, 80)
  if o.ascii == nil then o.ascii = not terminal.unicode end
  return tostring(part) .. "\n" .. part:histogram(o).text
end

--- One line: a statistic of this tensor over the steps, with a mark for NaN and a gap for a missing value.
---@param tensor msdbg.Tensor
---@param stat? string  a field of the statistics, or "change"; default abs_mean
---@param given? msdbg.Numbers|{ steps?: msdbg.Numbers, width?: integer, ascii?: boolean, colour?: boolean }  steps, or options
---@return string
function M.spark(tensor, stat, given)
  if given ~= nil and (type(given) ~= "table" or given[1] ~= nil) then given = { steps = given } end
  local o = options.check("spark", given, { steps = "any", width = "number", ascii = "boolean", colour = "boolean" })
  local node = tensor.node
  local session = core.session_of(tensor)
  local name = node.name .. ":" .. tensor.slot
  local series = steps.series(session, name, stat or "abs_mean", { steps = o.steps, rank = tensor.rank, graph = node.graph_id })
  local first, last, gaps, low, high = nil, nil, 0, HUGE, -HUGE
  for i, value in ipairs(series.values) do
    if value then
      first, last = first or series.steps[i], series.steps[i]
      if value == value then low, high = min(low, value), max(high, value) end
    else
      gaps = gaps + 1
    end
  end
  local head = format("%s of %s", series.stat, core.short_name(tensor))
  if not first then
    local why = series.missing[1]
    return format("%s: no step has it%s", head, why and format(" (%s)", why) or "")
  end
  local line = plot.sparkline(series.values, { width = o.width, ascii = o.ascii, colour = o.colour })
  local range = low <= high and format("   %s to %s", formats.number(low), formats.number(high)) or ""
  local gap = gaps > 0 and format(", %d without it", gaps) or ""
  return format("%s\n  ", head) .. line .. format("   steps %d to %d%s%s", first, last, range, gap)
end

return M
