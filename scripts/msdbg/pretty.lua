-- Values as printed by the prompt: objects use their own text; tables are nested, on one line if they fit, and cut off if they are
-- long.
local core = require "msdbg.core"
local formats = require "msdbg.format"

local concat, format, sort = table.concat, string.format, table.sort
local getmetatable, ipairs, pairs, pcall, tostring, type = getmetatable, ipairs, pairs, pcall, tostring, type

local M = {}

local WIDTH = 100         -- a longer table gets one line per entry
local DEEPEST = 4
local MOST_ELEMENTS = 20  -- of a list
local MOST_KEYS = 40
local MOST_LINES = 200    -- of an object's text
local LONGEST_STRING = 200

local function number_text(value, exact)
  if value ~= value then return "NaN" end
  if value == math.huge then return "Inf" end
  if value == -math.huge then return "-Inf" end
  if value % 1 == 0 and value >= -2 ^ 53 and value <= 2 ^ 53 then return format("%.0f", value) end
  if exact then return (format("%.14g", value)) end
  return format("%.5g", value)
end

-- Cuts long texts of objects after this many lines and counts the omitted ones.
local function cut_lines(text)
  local count, at = 0, 0
  for position in text:gmatch "()\n" do
    count = count + 1
    if count == MOST_LINES then at = position end
  end
  if count <= MOST_LINES + 1 or core.terminal().captured then return text end
  return format("%s\n... %d more lines; print(_) shows all", text:sub(1, at - 1), count - MOST_LINES + 1)
end

local function quoted(text)
  local shown = core.printable(format("%q", #text > LONGEST_STRING and formats.head(text, LONGEST_STRING) or text):gsub("\\\n", "\\n"))
  return #text > LONGEST_STRING and format("%s... %d bytes", shown, #text) or shown
end

local function has_text(value)
  local meta = getmetatable(value)
  return type(meta) == "table" and meta.__tostring
end

local function is_place(key, count) return type(key) == "number" and key >= 1 and key <= count and key % 1 == 0 end

local function key_text(key)
  if type(key) == "string" then return key:match "^[%a_][%w_]*$" and key or "[" .. quoted(key) .. "]" end
  return "[" .. (type(key) == "number" and number_text(key, true) or tostring(key)) .. "]"
end

local render

local function table_text(value, depth, above, indent)
  if depth >= DEEPEST then return "{...}" end
  if above[value] then return "{... itself}" end
  above[value] = true
  local parts, count = {}, #value
  for i, element in ipairs(value) do
    if i > MOST_ELEMENTS then
      parts[#parts + 1] = format("... %d more", count - MOST_ELEMENTS)
      break
    end
    parts[#parts + 1] = render(element, depth + 1, above, indent .. "  ")
  end
  local keys = {}
  for key in pairs(value) do
    if not is_place(key, count) then keys[#keys + 1] = key end
  end
  sort(keys, function(a, b)
    if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then return a < b end
    return tostring(a) < tostring(b)
  end)
  for i, key in ipairs(keys) do
    if i > MOST_KEYS then
      parts[#parts + 1] = format("... %d more", #keys - MOST_KEYS)
      break
    end
    parts[#parts + 1] = key_text(key) .. " = " .. render(value[key], depth + 1, above, indent .. "  ")
  end
  above[value] = nil
  if #parts == 0 then return "{}" end
  local one_line = "{ " .. concat(parts, ", ") .. " }"
  if #one_line + #indent <= WIDTH and not one_line:find "\n" then return one_line end
  return "{\n" .. indent .. "  " .. concat(parts, ",\n" .. indent .. "  ") .. "\n" .. indent .. "}"
end

function render(value, depth, above, indent)
  local kind = type(value)
  if kind == "string" then return quoted(value) end
  if kind == "number" then return number_text(value) end
  if kind ~= "table" then return tostring(value) end
  if has_text(value) then
    local ok, text = pcall(tostring, value)
    text = ok and text or "<cannot be printed: " .. tostring(text) .. ">"
    return (cut_lines(text):gsub("\n", "\n" .. indent))
  end
  return table_text(value, depth, above, indent)
end

--- The text of any value for the prompt: strings and numbers unchanged, tensors with their statistics.
---@param value any
---@return string
function M.text(value)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "number" then return number_text(value, true) end
  if core.class_of(value) == "tensor" then
    local ok, line = pcall(core.stats_line, value)
    return tostring(value) .. (ok and line and "  " .. line or "")
  end
  if core.class_of(value) then return cut_lines(tostring(value)) end
  return render(value, 0, {}, "")
end

return M
