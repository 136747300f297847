-- Text tables: aligned columns on a terminal, CSV, Markdown.
--
--   local tables = require "msdbg.table"
--   local rows = tables.new { "step", "node", { "mean", digits = 6 } }
--   rows:add(0, "Default/fc1", 0.25)
--   rows:print()
local core = require "msdbg.core"
local formats = require "msdbg.format"
local options = require "msdbg.options"

local concat = table.concat
local error, io, ipairs, pcall, select, setmetatable, tostring, type = error, io, ipairs, pcall, select, setmetatable, tostring, type

local M = {}

local Table = {}
Table.__index = Table

local function refuse(text) core.raise("invalid_argument", text) end

--- An empty table. A column is its title, or { title, align = "left"|"right", digits = n, fit = "keep"|"name"|"text", drop = n }.
--- By default, numbers are right-aligned with 4 significant digits. On a narrow terminal, the columns with the largest `drop` are
--- dropped first; then names lose leading scopes and texts their ends. Without `fit`, cells with slashes are names.
---@param columns (string|table)[]
---@return msdbg.Table
function M.new(columns)
  if type(columns) ~= "table" or #columns == 0 then refuse "table.new: a list of columns is expected" end
  local made = {}
  for i, column in ipairs(columns) do
    if type(column) == "string" then column = { column } end
    if type(column) ~= "table" or type(column[1]) ~= "string" then refuse("table.new: column " .. i .. " has no title") end
    options.check("table.new: column '" .. column[1] .. "'", column,
      { "string", align = { "left", "right" }, digits = "number", fit = { "keep", "name", "text" }, drop = "number" })
    made[i] = { title = column[1], align = column.align, digits = column.digits, fit = column.fit, drop = column.drop }
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

--- Sorts by a column, smallest first, or largest first with `descending`; empty cells come last, equal ones keep their order.
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
  -- NaN equals nothing and would break the order: it comes after the numbers.
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
  local texts, right = {}, {}
  for c, column in ipairs(self.columns) do
    local numbers, others = 0, 0
    for _, row in ipairs(self.rows) do
      if type(row[c]) == "number" then numbers = numbers + 1 elseif row[c] ~= nil then others = others + 1 end
    end
    right[c] = column.align == "right" or (column.align == nil and numbers > 0 and others == 0)
  end
  for r, row in ipairs(self.rows) do
    texts[r] = {}
    for c, column in ipairs(self.columns) do texts[r][c] = cell_text(row[c], column) end
  end
  return texts, right
end

local function fit_of(texts, c)
  for _, cells in ipairs(texts) do
    if cells[c]:find("/", 1, true) and not cells[c]:find(" ", 1, true) then return "name" end
  end
  return "text"
end

--- Aligned text, at most as wide as the terminal (or `width`; math.huge shortens nothing). Has no final newline.
---@param given? { width?: number, titles?: boolean }
---@return string
function Table:text(given)
  local o = options.check("table:text", given, { width = "number", titles = "boolean" })
  local texts, right = all_text(self)
  local columns = {}
  for c, column in ipairs(self.columns) do
    columns[c] = { title = o.titles ~= false and column.title or "", align = right[c] and "right" or "left", drop = column.drop,
      fit = column.fit or right[c] and "keep" or fit_of(texts, c), least = 16 }
  end
  return core.table_text(columns, texts, o.width or core.terminal().limit)
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

--- A Markdown table with right-aligned numbers.
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

--- Prints the table.
---@param given? { width?: number, titles?: boolean }
function Table:print(given) io.stdout:write(self:text(given), "\n") end

function Table:__tostring()
  local ok, text = pcall(self.text, self)
  if not ok then error(text, 0) end
  return text
end

return M
