-- How the plain tables returned by the library print. Rendering is separate from the data.
local core = require "msdbg.core"
local formats = require "msdbg.format"

local concat, format = table.concat, formats.line
local ipairs, pairs, rawget, tostring, type = ipairs, pairs, rawget, tostring, type

-- All fields of statistics; a known field that is absent has no value.
local stats_fields = {
  count = true, min = true, max = true, mean = true, abs_mean = true, std = true, l2_norm = true, nan_count = true,
  pos_inf_count = true, neg_inf_count = true, zero_count = true, pos_count = true, neg_count = true, zero_percentage = true,
  first_bad = true, dtype_max_count = true,
}

local function short(value)
  if type(value) == "number" then
    if value ~= value then return "NaN" end
    if value == 1 / 0 then return "Inf" end
    if value == -1 / 0 then return "-Inf" end
    if value % 1 == 0 and value > -2 ^ 53 and value < 2 ^ 53 then return format("%.0f", value) end
    return format("%.5g", value)
  end
  return core.printable(tostring(value))
end

local function list(values)
  local parts = {}
  for i, value in ipairs(values) do parts[i] = short(value) end
  return "[" .. concat(parts, ",") .. "]"
end

local function fields(record, names)
  local parts = {}
  for _, name in ipairs(names) do
    local value = rawget(record, name)
    if value ~= nil then parts[#parts + 1] = name .. " " .. (type(value) == "table" and list(value) or short(value)) end
  end
  return concat(parts, "  ")
end

local function lines(records)
  if #records == 0 then return "none" end
  local parts = {}
  for i, record in ipairs(records) do parts[i] = tostring(record) end
  return concat(parts, "\n")
end

local stats_order = { "count", "min", "max", "mean", "abs_mean", "std", "l2_norm", "nan_count", "pos_inf_count", "neg_inf_count",
  "zero_count", "pos_count", "neg_count", "zero_percentage", "dtype_max_count", "first_bad" }

local function define(name, text, index) core.record(name, { __tostring = text, __index = index, __name = name }) end

define("list", list)
define("stats", function(stats) return fields(stats, stats_order) end, function(_, key)
  if stats_fields[key] then return nil end
  local names = {}
  for name in pairs(stats_fields) do names[#names + 1] = name end
  local close = core.nearest(tostring(key), names, 1)
  local hint = close[1] and format(" (did you mean '%s'?)", close[1]) or ""
  core.raise("invalid_argument", format("statistics have no field '%s'%s", tostring(key), hint))
end)
define("place", function(place) return list(place) .. " = " .. short(place.value) end)
define("places", lines)
define("histogram", function(histogram) return histogram.text end)
define("parameter_diff", function(diff) return diff.text end)
define("frame", function(frame) return format("%s:%d  %s", frame.file, frame.line, frame.code) end)
define("source", function(source) return source.line and format("%s:%d", source.file, source.line) or source.file end)
define("edge", function(edge) return format("%s:%s", edge.name, edge.output or edge.slot or "?") end)
define("output", function(output) return output.dtype .. (output.shape and list(output.shape) or "[?]") end)
define("graph", function(graph)
  return format("graph %d %s  rank %d, %d nodes, %d steps", graph.id, graph.name, graph.rank, graph.nodes, #graph.steps)
end)
define("info", function(info)
  local text = fields(info, { "kind", "source", "framework_version", "device_target", "layout", "epoch", "nets" })
  return info.peer and text .. "\n" .. tostring(info.peer) or text
end)
define("notes", function(notes)
  local lines_of_notes = {}
  for i, note in ipairs(notes) do lines_of_notes[i] = format("note: %s", note) end
  return concat(lines_of_notes, "\n")
end)
define("peer", function(peer)
  local names = { "address", "version", "backend", "device", "has_levels", "has_recheck", "has_previous", "counts_after_hold" }
  if peer.named then table.insert(names, 2, "program") end
  local text = fields(peer, names)
  return "peer  " .. text .. (#peer.notes > 0 and "\n" .. tostring(peer.notes) or "")
end)
define("live_rank", function(rank)
  return format("rank %d  %s  %d completed  %s", rank.rank, rank.state, rank.completed_steps, rank.peer.address)
end)
define("can", function(can)
  return fields(can, { "step", "continue", "next_node", "run_to", "finish", "pause", "terminate", "detach", "attach", "wait", "goto_step",
    "recheck" })
end)
define("coverage", function(coverage) return fields(coverage, { "tensors", "checked", "not_checked", "bytes", "from_cache" }) end)
define("param", function(param) return fields(param, { "name", "threshold", "actual", "hit" }) end)
define("hit", function(hit)
  local text = format("step %d  %s:%s  %s  %s", hit.step, hit.node, hit.slot, hit.abbr ~= "" and hit.abbr or hit.rule, hit.message)
  return (text:gsub("%s+$", ""))
end)
define("not_checked", function(entry)
  return format("step %d  %s:%s  %s  %s", entry.step, entry.node, entry.slot, entry.abbr ~= "" and entry.abbr or entry.rule, entry.reason)
end)
define("hits", lines)
define("cause", function(cause) return format("%d of %d: %s", cause.findings, cause.total, cause.sentence) end)
define("watches", lines)
define("tensor_place", function(place) return format("step %d  %s:%s", place.step, place.node, place.slot) end)
define("unmatched", function(node) return format("%s  %s", node.node, node.op) end)
define("origin_input", function(input)
  return format("%s  %s:%s  %s", input.slot, input.node, input.producer_slot or "?", input.reason or input.message)
end)
define("origin", function(origin)
  return format("step %d  %s:%s  %s; reaches %d tensor%s", origin.step, origin.node, origin.slot, origin.message, origin.reached,
    origin.reached == 1 and "" or "s")
end)
