-- The part of the tensor object that is written in Lua.
local core = require "msdbg.core"
local view = require "msdbg.view"

local floor, format, type = math.floor, string.format, type
local io, print, tostring = io, print, tostring

local methods = core.members "tensor"

methods.view = view.new

local where = methods.where

-- A Lua predicate runs over the view here, where the compiler sees the whole loop.
function methods.where(tensor, predicate, options)
  if type(predicate) ~= "function" then return where(tensor, predicate, options) end
  local limit = options and options.limit or math.huge
  local v, shape = tensor:view(), tensor.shape
  local found, total = core.new_record("places"), 0
  for i = 0, v.n - 1 do
    local value = v[i]
    if predicate(value) then
      total = total + 1
      if total <= limit then
        local place, rest = core.new_record("place"), i
        for axis = #shape, 1, -1 do
          place[axis] = rest % shape[axis]
          rest = floor(rest / shape[axis])
        end
        place.value, place.index = value, i
        found[total] = place
      end
    end
  end
  return found, total
end

--- What `show` prints, as text.
local function describe(tensor, options)
  local lines = {}
  local function add(name, value)
    if value and value ~= "" then lines[#lines + 1] = format("%-10s %s", name, value) end
  end
  lines[1] = tostring(tensor)
  add("node", tensor.node.name)
  local frame = tensor.node.stack[1]
  add("source", frame and tostring(frame))
  local line, why = core.stats_line(tensor)
  add("statistics", line or why)
  add("note", tensor.note)
  local elements, reason = core.elements_text(tensor, options and options.rows)
  if elements then lines[#lines + 1] = elements elseif reason ~= why then add("elements", reason) end
  return table.concat(lines, "\n")
end
core.describe_tensor = describe

function methods.show(tensor, options)
  io.stdout:flush()
  print(describe(tensor, options))
end

return methods
