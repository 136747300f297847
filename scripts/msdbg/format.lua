-- Numbers, sizes, durations and names for people.
local core = require "msdbg.core"

local abs, floor, format = math.abs, math.floor, string.format
local ipairs, select, tostring, type = ipairs, select, tostring, type

local M = {}

--- `digits` significant digits (default 4) without trailing zeros: 0.0843, 3.4e+36, NaN, -Inf. "-" for nil.
---@param value number?
---@param digits integer?
---@return string
function M.number(value, digits)
  if value == nil then return "-" end
  return core.short_number(value, digits)
end

--- The shortest decimal number that reads back as the same double.
---@param value number
---@return string
function M.exact(value) return core.exact_number(value) end

--- An integer with thousands separators: 12,345,678.
---@param value integer
---@return string
function M.count(value)
  if type(value) ~= "number" or value ~= value or abs(value) == math.huge or value % 1 ~= 0 then
    core.raise("invalid_argument", "format.count: a whole number is expected, not " .. tostring(value))
  end
  local digits = format("%.0f", abs(value))
  local grouped = digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
  return (value < 0 and "-" or "") .. grouped
end

--- Ascending whole numbers as ranges: "0-3, 7"; six or more with the same distance as "0, 2, ..., 62"; "none" without any.
---@param numbers integer[]
---@return string
function M.ranges(numbers)
  local parts, i = {}, 1
  while i <= #numbers do
    local first, last = numbers[i], i
    local distance = i < #numbers and numbers[i + 1] - first or 1
    while last < #numbers and numbers[last + 1] - numbers[last] == distance do last = last + 1 end
    if distance ~= 1 and last - i < 5 then last = i end
    parts[#parts + 1] = last == i and format("%d", first) or distance == 1 and format("%d-%d", first, numbers[last])
      or format("%d, %d, ..., %d", first, numbers[i + 1], numbers[last])
    i = last + 1
  end
  return #parts > 0 and table.concat(parts, ", ") or "none"
end

--- 5242880 -> "5.0 MiB".
---@param count number
---@return string
function M.bytes(count) return core.byte_count(count) end

--- Seconds as "850 us", "12.3 ms", "4.2 s", "3:07 min", "2:05:10 h".
---@param seconds number
---@return string
function M.duration(seconds)
  if type(seconds) ~= "number" or seconds ~= seconds then
    core.raise("invalid_argument", "format.duration: seconds are a number, not " .. tostring(seconds))
  end
  if seconds < 0 then return "-" .. M.duration(-seconds) end
  if seconds == math.huge then return "forever" end
  if seconds < 0.9995e-3 then return format("%.0f us", seconds * 1e6) end
  if seconds < 0.9995 then return format("%.3g ms", seconds * 1e3) end
  if seconds < 59.95 then return format("%.1f s", seconds) end
  local whole = floor(seconds + 0.5)
  if whole < 3600 then return format("%d:%02d min", floor(whole / 60), whole % 60) end
  return format("%d:%02d:%02d h", floor(whole / 3600), floor(whole / 60) % 60, whole % 60)
end

--- A share of 0 to 1 as a percentage; small shares are not rounded to 0.
---@param share number?
---@return string
function M.percent(share)
  if share == nil then return "-" end
  local value = share * 100
  if value ~= 0 and abs(value) < 0.05 then return core.short_number(value, 2) .. " %" end
  return format("%.1f %%", value)
end

local function harmless(count, value, ...)
  if count == 0 then return end
  if type(value) == "string" and value:find "[%c\128-\255]" then value = core.printable(value) end
  return value, harmless(count - 1, ...)
end

--- string.format for a line of text: control characters in the strings (names from a graph, reasons, paths) cannot start another
--- line, change the colour or control the terminal.
---@param pattern string
---@return string
function M.line(pattern, ...) return format(pattern, harmless(select("#", ...), ...)) end

--- The width of a text on a terminal: two columns for a wide East Asian character, none for a combining mark.
---@param text string
---@return integer
function M.width(text) return core.width(text) end

--- The first `width` columns.
function M.head(text, width) return core.head(text, width) end

--- At most `width` columns: drops leading scopes of a node name first, then cuts off the end.
---@param text string
---@param width integer
---@return string
function M.shorten(text, width)
  if M.width(text) <= width then return text end
  if width < 4 then return M.head(text, width) end
  local from = 1
  while true do
    local slash = text:find("/", from, true)
    if not slash then break end
    local rest = text:sub(slash)
    if M.width(rest) + 3 <= width and #rest > 1 then return "..." .. rest end
    from = slash + 1
  end
  return M.head(text, width - 3) .. "..."
end

--- Lines of cells with aligned columns; the last cell of a line is not padded.
---@param rows string[][]
---@return string
function M.columns(rows)
  local columns, count = {}, 0
  for _, row in ipairs(rows) do count = math.max(count, #row) end
  for c = 1, count do columns[c] = { title = "" } end
  return core.table_text(columns, rows, math.huge)
end

--- `text` padded with blanks to `width` columns.
---@param text string
---@param width integer
---@param right boolean?  right-aligned
---@return string
function M.pad(text, width, right)
  local blanks = (" "):rep(width - M.width(text))
  return right and blanks .. text or text .. blanks
end

return M
