-- Commands for one tensor.
local formats = require "msdbg.format"
local pictures = require "msdbg.tensor_pictures"
local registry = require "msdbg.repl_registry"

local command, mistake, need, number = registry.command, registry.mistake, registry.need, registry.number
local concat, format = table.concat, formats.line
local ipairs, tostring = ipairs, tostring

local place_options = { { "step", "N", "default: the current one" }, { "rank", "N", "where there are several" } }

local function with(more)
  local all = {}
  for _, option in ipairs(more) do all[#all + 1] = option end
  for _, option in ipairs(place_options) do all[#all + 1] = option end
  return all
end

-- The tensor of `NODE:slot[slice]`, or of a Lua variable that holds one, and the slice text or nil.
local function find(definition, session, name, options)
  if name == "" then registry.usage(definition, definition.name .. ": which tensor?") end
  local part
  local bare, slice = name:match "^(.-)%[([%d:,%s%-]+)%]$"
  if bare then name, part = bare, slice:gsub("%s+", "") end
  if not bare and name:find "%[[%d:,%s%-]*$" then
    registry.usage(definition, format("%s: the slice of '%s' has no ']'", definition.name, name))
  end
  local held = registry.state.held(name)
  if held then return held, options.slice or part end
  local place = {}
  for _, key in ipairs { "step", "rank" } do
    if options[key] then place[key] = number(definition, options[key], "a " .. key) end
  end
  local s = need(session)
  local tensor, why = s:tensor(name, place)
  if not tensor and not place.step and registry.keep_readable(s, name) then tensor, why = s:tensor(name, place) end
  if not tensor then mistake(why) end
  return tensor, options.slice or part
end

local function whole(definition, options, name)
  return options[name] and number(definition, options[name], "a number for --" .. name)
end

-- `NAME REST`: selectors have blanks, names of tensors have none outside of a slice.
local function split(rest)
  rest = rest:gsub("^(%S+)%s+(%b[])", "%1%2")
  local name, more = rest:match "^(%S-%b[])%s*(.*)$"
  if not name then name, more = rest:match "^(%S+)%s*(.*)$" end
  return name or "", more or ""
end

local function tensor_command(definition)
  local act = definition.run
  definition.complete = definition.complete or "tensor"
  definition.run = function(session, rest, options)
    local name, more = split(rest)
    local tensor, slice = find(definition, session, registry.unquote(name), options)
    return act(tensor, slice, more, options, definition)
  end
  command(definition)
end

local function nothing_behind(definition, more)
  if more ~= "" then registry.usage(definition, format("%s: '%s' is not understood", definition.name, more)) end
end

registry.group "one tensor"

tensor_command {
  name = "heatmap", usage = "heatmap TENSOR[SLICE]", summary = "two axes of a tensor as shades",
  options = with { { "slice", "TEXT", "two axes of it, e.g. 0,:,:" }, { "rows", "N", "at most N rows" } },
  run = function(tensor, slice, more, options, definition)
    nothing_behind(definition, more)
    return pictures.heatmap(tensor, { slice = slice, rows = whole(definition, options, "rows") })
  end,
}

-- A list of coordinates, with a note of what is left out.
local function places_text(places, total)
  local lines = {}
  for i, place in ipairs(places) do lines[i] = tostring(place) end
  if #lines == 0 then return "none" end
  if total > #places then lines[#lines + 1] = format("... %d in all", total) end
  return concat(lines, "\n")
end

tensor_command {
  name = "worst", usage = "worst TENSOR[SLICE] [K]", summary = "NaN, infinities, then the largest magnitudes",
  examples = { "worst Log-op0 5" },
  options = with {},
  run = function(tensor, slice, more, _, definition)
    local part = slice and tensor:slice(slice) or tensor
    return places_text(part:worst(more ~= "" and number(definition, more, "how many") or 10), 0)
  end,
}

tensor_command {
  name = "where", usage = "where TENSOR[SLICE] PREDICATE [--limit N]", summary = "coordinates of elements that satisfy a predicate",
  details = "PREDICATE is an expression with a truth value for each element, or one of nan, inf, bad, finite, zero.",
  examples = { "where Log-op0 isinf(x)", "where fc1.weight x > 3*std(x) --limit 5" }, complete = "where",
  options = with { { "limit", "N", "places to list, default 20" } },
  run = function(tensor, slice, more, options, definition)
    if more == "" then registry.usage(definition, "where: which elements?") end
    local part = slice and tensor:slice(slice) or tensor
    local places, total = part:where(registry.unquote(more), { limit = whole(definition, options, "limit") or 20 })
    return places_text(places, total)
  end,
}
