-- The Lua part of the tensor object.
local core = require "msdbg.core"
local pictures = require "msdbg.tensor_pictures"
local elements = require "msdbg.tensor_elements"

local floor, io, print, type = math.floor, io, print, type

local methods = core.members "tensor"

methods.view = elements.new

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

-- Keeps the output of the C side and of Lua in order.
local function print_text(text)
  io.stdout:flush()
  print(core.visible(text))
end

function methods.show(tensor, options) print_text(pictures.show(tensor, options)) end
function methods.heatmap(tensor, options) print_text(pictures.heatmap(tensor, options)) end
function methods.hist(tensor, options) print_text(pictures.hist(tensor, options)) end
function methods.spark(tensor, stat, options) print_text(pictures.spark(tensor, stat, options)) end

return methods
