-- Tables of text: aligned columns on a terminal, CSV, Markdown.
--
--   local tables = require "msdbg.table"
--   local rows = tables.new { "step", "node", { "mean", digits = 6 } }
--   rows:add(0, "Default/fc1", 0.25)
--   rows:print()
local core = require "msdbg.core"
local formats = require "msdbg.format"
local options = require "msdbg.options"

local concat, max, min = table.concat, math.max, math.min
local error, io, ipairs, pcall, select, setmetatable, tostring, type = error, io, ipairs, pcall, select, setmetatable, tostring, type

local M = {}

local LEAST_SHRUNK = 16  -- columns that a shortened cell keeps
local GAP = "  "

local Table = {}
Table.__index = Table

local function refuse(text) core.raise("invalid_argument", text) end

--- An empty table. A column is its title, or { title, align = "left"|"right", digits = n, shrinks = boolean }: numbers stand at the
--- right and have 4 significant digits unless told otherwise; texts give way when the terminal is narrow.
---@param columns (string|table)[]
---@return msdbg.Table
function M.new(columns)
  if type(columns) ~= "table" or #columns == 0 then refuse "table.new: a list of columns is expected" end
  local made = {}
  for i, column in ipairs(columns) do
    if type(column) == "string" then column = { column } end
    if type(column) ~= "table" or type(column[1]) ~= "string" then refuse("table.new: column " .. i .. " has no title") end
    options.check("table.new: column '" .. column[1] .. "'", column,
      { "string", align = { "left", "right" }, digits = "number", shrinks = "boolean" })
    made[i] = { title = column[1], align = column.align, digits = column.digits, shrinks = column.shrinks }
  end
  return setmetatable({ columns = made, rows = {} }, Table)
end

--- A table with these rows, each a list of cells.
---@param columns (string|table)[]
---@param rows any[][]
---@return msdbg.Table
function M.of(columns, rows)
  local made = M.new(columns)
  for _, row in ipairs(rows) do made:add(unpack(row, 1, #made.columns)) end
  return made
end

--- One cell per column; nil leaves it empty.
---@return msdbg.Table  itself
function Table:add(...)
  local count = select("#", ...)
  if count > #self.columns then refuse("table: a row of " .. count .. " cells in a table of " .. #self.columns .. " columns") end
  self.rows[#self.rows + 1] = { ... }
  return self
end

--- Sorts by a column, smallest first or with `descending` largest first; empty cells come last, equal ones keep their order.
---@param title string
---@param descending boolean?
---@return msdbg.Table  itself
function Table:sort(title, descending)
  local at
  for i, column in ipairs(self.columns) do at = column.title == title and i or at end
  if not at then
    local titles = {}
    for i, column in ipairs(self.columns) do titles[i] = column.title end
    refuse("table: no column '" .. tostring(title) .. "'; there is " .. concat(titles, ", "))
  end
  local place, kinds = {}, {}
  for i, row in ipairs(self.rows) do
    place[row] = i
    if row[at] ~= nil then kinds[type(row[at])] = true end
  end
  local as_text = not (kinds.number and not kinds.string and not kinds.boolean)
  -- NaN equals nothing and would break the order, so it goes behind the numbers.
  local function key(row)
    local value = row[at]
    if value == nil or value ~= value then return nil end
    return as_text and tostring(value) or value
  end
  table.sort(self.rows, function(a, b)
    local x, y = key(a), key(b)
    if x == y then return place[a] < place[b] end
    if x == nil or y == nil then return y == nil end
    if descending then return x > y end
    return x < y
  end)
  return self
end

local function cell_text(value, column)
  if value == nil then return "" end
  if type(value) == "number" then
    if value % 1 == 0 and value > -1e15 and value < 1e15 and not column.digits then return ("%.0f"):format(value) end
    return formats.number(value, column.digits)
  end
  return core.printable(tostring(value))
end

local function all_text(self)
  local texts, right, widths = {}, {}, {}
  for c, column in ipairs(self.columns) do
    local numbers, others = 0, 0
    for _, row in ipairs(self.rows) do
      if type(row[c]) == "number" then numbers = numbers + 1 elseif row[c] ~= nil then others = others + 1 end
    end
    right[c] = column.align == "right" or (column.align == nil and numbers > 0 and others == 0)
    widths[c] = formats.width(column.title)
  end
  for r, row in ipairs(self.rows) do
    texts[r] = {}
    for c, column in ipairs(self.columns) do
      texts[r][c] = cell_text(row[c], column)
      widths[c] = max(widths[c], formats.width(texts[r][c]))
    end
  end
  return texts, right, widths
end

-- Takes columns from the widest ones that may give way until the table fits or nothing more can go.
local function fit(self, widths, right, width)
  local total = #GAP * (#widths - 1)
  for _, each in ipairs(widths) do total = total + each end
  while total > width do
    local widest, least
    for c, column in ipairs(self.columns) do
      local floor = max(LEAST_SHRUNK, formats.width(column.title))
      local may = column.shrinks == nil and not right[c] or column.shrinks
      if may and widths[c] > floor and (not widest or widths[c] > widths[widest]) then widest, least = c, floor end
    end
    if not widest then break end
    local cut = min(total - width, max(1, math.floor((widths[widest] - least) / 2 + 0.5)))
    widths[widest] = widths[widest] - cut
    total = total - cut
  end
end

--- Aligned text, as wide as the terminal at most (or `width`; math.huge shortens nothing). Ends without a newline.
---@param given? { width?: number, titles?: boolean }
---@return string
function Table:text(given)
  local o = options.check("table:text", given, { width = "number", titles = "boolean" })
  local texts, right, widths = all_text(self)
  fit(self, widths, right, o.width or core.terminal().width)
  local lines = {}
  local function add(cells)
    local parts = {}
    for c in ipairs(self.columns) do parts[c] = formats.pad(formats.shorten(cells[c], widths[c]), widths[c], right[c]) end
    lines[#lines + 1] = (concat(parts, GAP):gsub("%s+$", ""))
  end
  if o.titles ~= false then
    local titles = {}
    for c, column in ipairs(self.columns) do titles[c] = column.title end
    add(titles)
  end
  for _, cells in ipairs(texts) do add(cells) end
  return concat(lines, "\n")
end

local function exact(value)
  if value == nil then return "" end
  if type(value) == "number" then return formats.exact(value) end
  return tostring(value)
end

--- RFC 4180 with CRLF; numbers with all their digits.
---@return string
function Table:csv()
  local lines = {}
  local function add(cells, count)
    local parts = {}
    for c = 1, count do
      local text = exact(cells[c])
      parts[c] = text:find '[",\r\n]' and '"' .. text:gsub('"', '""') .. '"' or text
    end
    lines[#lines + 1] = concat(parts, ",") .. "\r\n"
  end
  local titles = {}
  for c, column in ipairs(self.columns) do titles[c] = column.title end
  add(titles, #titles)
  for _, row in ipairs(self.rows) do add(row, #titles) end
  return concat(lines)
end

local function escape(text) return (text:gsub("[\\|`*_<>%[%]]", "\\%0"):gsub("[\r\n]+", " ")) end

--- A Markdown table, numbers at the right.
---@return string
function Table:markdown()
  local texts, right = all_text(self)
  local titles, rules = {}, {}
  for c, column in ipairs(self.columns) do
    titles[c], rules[c] = escape(column.title), right[c] and "--:" or "---"
  end
  local lines = { "| " .. concat(titles, " | ") .. " |", "|" .. concat(rules, "|") .. "|" }
  for _, cells in ipairs(texts) do
    for c, text in ipairs(cells) do cells[c] = escape(text) end
    lines[#lines + 1] = "| " .. concat(cells, " | ") .. " |"
  end
  return concat(lines, "\n")
end

--- Prints it for people.
---@param given? { width?: number, titles?: boolean }
function Table:print(given) io.stdout:write(self:text(given), "\n") end

function Table:__tostring()
  local ok, text = pcall(self.text, self)
  if not ok then error(text, 0) end
  return text
end

return M
