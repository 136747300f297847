-- Pictures made of characters: sparklines, bars, histograms, heat maps. Unicode blocks if the locale supports them, else ASCII
-- (also with MSDBG_ASCII=1); colour if the terminal and the user allow it.
local core = require "msdbg.core"
local formats = require "msdbg.format"
local options = require "msdbg.options"

local ceil, concat, floor, max, min = math.ceil, table.concat, math.floor, math.max, math.min
local ipairs, type = ipairs, type

local M = {}

local unicode = {
  ramp = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" },
  shades = { " ", "░", "▒", "▓", "█" },
  eighths = { "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" },
  nan = "×", high = "▲", low = "▼", gap = " ",
}
local ascii = {
  ramp = { "_", ".", "-", "=", "o", "O", "#", "@" },
  shades = { " ", ".", ":", "o", "#" },
  nan = "N", high = "^", low = "v", gap = " ",
}

local HUGE = math.huge
local red, yellow, plain = "\27[31m", "\27[33m", "\27[0m"
-- From cold to warm, of the 256 colours: blue, cyan, green, yellow, red.
local warmth = { 19, 26, 37, 71, 142, 178, 208, 196 }

local shared = { ascii = "boolean", colour = "boolean" }

local function with(more)
  for name, kind in pairs(shared) do more[name] = kind end
  return more
end

-- The characters to use and whether colour is allowed, from the options or else the terminal.
local function look(o)
  local terminal = core.terminal()
  local plain_text = o.ascii
  if plain_text == nil then plain_text = not terminal.unicode end
  local colour = o.colour
  if colour == nil then colour = terminal.colour end
  return plain_text and ascii or unicode, colour, terminal.width
end

local function paint(text, code, colour) return colour and code .. text .. plain or text end

local function special(value, set, colour)
  if value ~= value then return paint(set.nan, red, colour) end
  if value == HUGE then return paint(set.high, yellow, colour) end
  if value == -HUGE then return paint(set.low, yellow, colour) end
end

local function numbers(call, values)
  if type(values) ~= "table" then core.raise("invalid_argument", call .. ": a list of numbers is expected, not a " .. type(values)) end
  for i = 1, #values do
    if type(values[i]) ~= "number" and values[i] ~= false then
      core.raise("invalid_argument", ("%s: element %d is not a number (false leaves a gap)"):format(call, i))
    end
  end
end

--- The smallest and the largest finite value; nil without any.
local function bounds(values, low, high)
  for i = 1, #values do
    local value = values[i]
    if value and value == value and value ~= HUGE and value ~= -HUGE then
      low, high = min(low or value, value), max(high or value, value)
    end
  end
  return low, high
end

-- 1..count; halves first, because the span of two large values overflows.
local function level(value, low, high, count)
  if not low or high <= low then return floor((count + 1) / 2) end
  return min(count, max(1, floor((value / 2 - low / 2) / (high / 2 - low / 2) * count) + 1))
end

-- Joins neighbours if there are more values than columns: non-finite values win, then the largest magnitude.
local function condense(values, width)
  if #values <= width then return values end
  local out = {}
  for column = 1, width do
    local first, last, found = floor((column - 1) * #values / width) + 1, floor(column * #values / width), false
    for i = first, last do
      local value = values[i]
      if value and (not found or value ~= value or (found == found and math.abs(value) > math.abs(found))) then found = value end
    end
    out[column] = found
  end
  return out
end

--- One character per value, low to high; NaN and infinities have their own marks, false leaves a gap.
---@param values (number|false)[]
---@param given? { min?: number, max?: number, width?: integer, ascii?: boolean, colour?: boolean }
---@return string
function M.sparkline(values, given)
  local o = options.check("plot.sparkline", given, with { min = "number", max = "number", width = "number" })
  numbers("plot.sparkline", values)
  local set, colour, terminal_width = look(o)
  local shown = condense(values, options.integer("plot.sparkline", o, "width", 1, 10000, max(20, terminal_width - 40)))
  local low, high = bounds(shown)
  low, high = o.min or low, o.max or high
  local parts = {}
  for i = 1, #shown do
    local value = shown[i]
    parts[i] = not value and set.gap or special(value, set, colour) or set.ramp[level(value, low, high, #set.ramp)]
  end
  return concat(parts)
end

local function bar(share, width, set)
  if set == ascii then return ("#"):rep(ceil(share * width)) end
  local eighths = ceil(share * width * 8)
  return (set.eighths[8]):rep(floor(eighths / 8)) .. (set.eighths[eighths % 8] or "")
end

--- Horizontal bars, each with a label before it and the number after it.
---@param labels string[]
---@param values number[]  0 or more
---@param given? { width?: integer, ascii?: boolean, colour?: boolean }
---@return string
function M.bars(labels, values, given)
  local o = options.check("plot.bars", given, with { width = "number" })
  numbers("plot.bars", values)
  local set, colour, terminal_width = look(o)
  local width = options.integer("plot.bars", o, "width", 10, 10000, min(terminal_width, 80))
  local most, label_width, number_width, texts = 0, 0, 0, {}
  for i, value in ipairs(values) do
    if value and value < HUGE then most = max(most, value) end
    texts[i] = value and (value % 1 == 0 and value < 1e15 and ("%.0f"):format(value) or formats.number(value)) or "-"
    label_width = max(label_width, formats.width(labels[i] or ""))
    number_width = max(number_width, #texts[i])
  end
  local room = max(4, width - label_width - number_width - 6)
  local lines = {}
  for i, value in ipairs(values) do
    local share = most > 0 and value and value == value and value > 0 and min(1, value / most) or 0
    local drawn = special(value or 0, set, colour) or bar(share, room, set)
    local fill = (" "):rep(room - (special(value or 0, set, false) and 1 or formats.width(drawn)))
    local label, text = formats.pad(core.printable(labels[i] or ""), label_width, true), formats.pad(texts[i], number_width, true)
    lines[i] = ("  %s | %s%s %s"):format(label, drawn, fill, text)
  end
  return concat(lines, "\n")
end

--- Counts between edges as bars: the result of t:histogram(), or { edges =, counts =, nonfinite = }.
---@param histogram table
---@param given? { width?: integer, log_counts?: boolean, ascii?: boolean, colour?: boolean }
---@return string
function M.histogram(histogram, given)
  local o = options.check("plot.histogram", given, with { width = "number", log_counts = "boolean" })
  local edges, counts = histogram.edges, histogram.counts
  if type(edges) ~= "table" or type(counts) ~= "table" or #edges ~= #counts + 1 then
    core.raise("invalid_argument", "plot.histogram: edges and counts are expected, one edge more than counts")
  end
  local set, _, terminal_width = look(o)
  local width = options.integer("plot.histogram", o, "width", 20, 10000, min(terminal_width, 80))
  local most, label_width, number_width = 1, 1, 1
  for _, count in ipairs(counts) do most, number_width = max(most, count), max(number_width, #("%.0f"):format(count)) end
  for _, edge in ipairs(edges) do label_width = max(label_width, #formats.number(edge)) end
  local room = max(4, width - label_width - number_width - 6)
  local function share(count)
    if o.log_counts then return math.log(1 + count) / math.log(1 + most) end
    return count / most
  end
  local lines = {}
  for i, count in ipairs(counts) do
    lines[i] = ("  %s | %s %s"):format(formats.pad(formats.number(edges[i]), label_width, true),
      formats.pad(bar(share(count), room, set), room), formats.pad(("%.0f"):format(count), number_width, true))
  end
  local last = "  " .. formats.pad(formats.number(edges[#edges]), label_width, true) .. " |"
  if o.log_counts then last = last .. " lengths are logarithmic" end
  local bad = histogram.nonfinite or 0
  if bad > 0 then last = ("%s%s%d not finite"):format(last, o.log_counts and ", " or " and ", bad) end
  lines[#lines + 1] = last
  return concat(lines, "\n")
end

-- One cell of a heat map: shades, or blocks of colour.
local function shade(value, low, high, set, colour)
  if not value then return " " end
  local mark = special(value, set, colour)
  if mark then return mark end
  if colour then return ("\27[48;5;%dm \27[0m"):format(warmth[level(value, low, high, #warmth)]) end
  return set.shades[level(value, low, high, #set.shades)]
end

--- Rows of numbers as shades, with a frame of labels and a legend that explains every mark.
---@param rows (number|false)[][]
---@param given? { min?: number, max?: number, labels?: string[], ascii?: boolean, colour?: boolean }
---@return string
function M.heatmap(rows, given)
  local o = options.check("plot.heatmap", given, with { min = "number", max = "number", labels = "table" })
  local set, colour = look(o)
  local low, high, label_width = nil, nil, 0
  local seen = {}
  for r, row in ipairs(rows) do
    numbers("plot.heatmap: row " .. r, row)
    low, high = bounds(row, low, high)
    for i = 1, #row do
      local value = row[i]
      if value and value ~= value then seen.nan = true
      elseif value == HUGE then seen.high = true
      elseif value == -HUGE then seen.low = true end
    end
    label_width = max(label_width, formats.width(o.labels and o.labels[r] or ""))
  end
  low, high = o.min or low, o.max or high
  local lines = {}
  for r, row in ipairs(rows) do
    local parts = {}
    for i = 1, #row do parts[i] = shade(row[i], low, high, set, colour) end
    local label = label_width > 0 and formats.pad(core.printable(o.labels[r] or ""), label_width, true) .. " " or ""
    lines[r] = "  " .. label .. "|" .. concat(parts) .. "|"
  end
  local legend = {}
  if low then
    local steps = colour and #warmth or #set.shades
    local parts = {}
    for i = 1, steps do parts[i] = shade(i - 0.5, 0, steps, set, colour) end
    legend[1] = ("%s [%s] %s"):format(formats.number(low), concat(parts), formats.number(high))
  end
  if seen.nan then legend[#legend + 1] = paint(set.nan, red, colour) .. " NaN" end
  if seen.high then legend[#legend + 1] = paint(set.high, yellow, colour) .. " +Inf" end
  if seen.low then legend[#legend + 1] = paint(set.low, yellow, colour) .. " -Inf" end
  lines[#lines + 1] = "  " .. (#legend > 0 and concat(legend, "   ") or "no elements")
  return concat(lines, "\n")
end

return M
