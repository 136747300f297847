-- `repro`: one operator with its inputs, attributes and outputs as files, and a program that runs it again.
local core = require "msdbg.core"
local json = require "msdbg.json"
local options = require "msdbg.options"
local template = require "msdbg.repro_program"

local concat, format = table.concat, string.format
local ipairs, pairs, setmetatable, tonumber, tostring, type = ipairs, pairs, setmetatable, tonumber, tostring, type

local M = {}

local function slot_number(slot) return tonumber(slot:match "%d+$") end

local function is_there(t) return t ~= nil and not t.problem end

-- Operators that write their inputs: the recorded inputs are the values afterwards.
local WRITES = { "^Assign", "^Scatter", "Apply", "Adam", "SGD", "Momentum", "RMSProp", "Lamb" }

local function writes_inputs(node)
  for _, pattern in ipairs(WRITES) do
    if node.op:find(pattern) then return true end
  end
  return false
end

-- A parameter as it was when the step began; its own file holds the value at the end of the step.
local function parameter_before(parameter, where)
  local now = parameter:value { step = where.step }
  local before = now and now:previous()
  if before and is_there(before) then return before, format("the value of step %d, before this step changed it", before.step) end
  if is_there(now) and not parameter.trainable then return now end
  return nil, "its value before the step was not dumped"
end

--- An input as the operator read it; nil and the reason if it was not dumped.
local function input_value(node, index, edge, where, written)
  local recorded, why = node:input(index, where)
  local from = edge.node
  if is_there(recorded) and not (written and from and from.kind == "parameter") then return recorded end
  if not from then return nil, recorded and recorded.problem or why end
  local value, note
  if from.kind == "operator" then
    value, note = from:output(slot_number(edge.slot or "output:0"), { step = where.step })
  elseif from.kind == "parameter" then
    value, note = parameter_before(from, where)
    if not value and is_there(recorded) then return nil, "the operator writes it: its value before the step was not dumped" end
    if value then return value, nil, note end
  else
    value, note = from:value { step = where.step }
  end
  if is_there(value) then return value end
  return nil, value and value.problem or note or why
end

local function describe(entry, t, file, directory)
  t:save(directory .. "/" .. file)
  entry.file, entry.dtype, entry.shape = file, t.dtype, json.array(t.shape)
end

-- Operators that only order or group values.
local STRUCTURE = { UpdateState = true, Load = true, Depend = true, MakeTuple = true, TupleGetItem = true, Return = true }

local function inputs_of(node, where, directory)
  local list, written = json.array {}, writes_inputs(node)
  for i, edge in ipairs(node.inputs) do
    if edge.node and edge.node.op == "UpdateState" then break end  -- an order, not a value; these come last
    local entry = { slot = "input:" .. (i - 1), producer = edge.name, producer_slot = edge.slot }
    local constant = edge.node and edge.node.kind == "constant" and edge.node.constant
    local value, why, note = input_value(node, i - 1, edge, where, written)
    if value then
      describe(entry, value, format("input_%d.npy", i - 1), directory)
      entry.note = note
      entry.written = written and edge.node and edge.node.kind == "parameter" and #value.shape > 0 or nil
    elseif constant then
      entry.constant = constant
    else
      entry.missing = why or "not dumped"
    end
    list[#list + 1] = entry
  end
  return list
end

local function outputs_of(node, where, directory)
  local list = json.array {}
  for i in ipairs(node.outputs) do
    local entry = { slot = "output:" .. (i - 1) }
    local value, why = node:output(i - 1, where)
    if is_there(value) then
      describe(entry, value, format("output_%d.npy", i - 1), directory)
    else
      entry.missing = value and value.problem or why or "not dumped"
    end
    list[#list + 1] = entry
  end
  return list
end

local function source_of(node)
  for _, frame in ipairs(node.stack) do
    local library = frame.file:find("/mindspore/", 1, true) or frame.file:find("-packages/", 1, true)
    if not library then return { file = frame.file, line = frame.line, code = frame.code } end
  end
end

local function fill(session, node, where, directory)
  local attributes = {}
  for name, text in pairs(node.attrs) do attributes[name] = text end
  local made = {
    msdbg = core.version, dump = session.info.source, name = node.name, op = node.op, rank = node.rank, graph = node.graph,
    graph_id = node.graph_id, step = where.step, execution = where.execution or 0, framework_version = session.info.framework_version,
    source = source_of(node), attributes = attributes,
  }
  if session.info.framework ~= "" then
    made.framework, made.arguments = session.info.framework, node:arguments { step = where.step }
  end
  made.outputs = outputs_of(node, where, directory)
  made.inputs = inputs_of(node, where, directory)
  local any = false
  for _, list in ipairs { made.inputs, made.outputs } do
    for _, entry in ipairs(list) do any = any or entry.file ~= nil end
  end
  if not any then
    local first = made.outputs[1] or made.inputs[1]
    core.raise("no_data", format("repro: no value of %s: %s", node.name, first and first.missing or "it has no slots"), true)
  end
  core.write_file(directory .. "/node.json", json.encode(made, { indent = 2 }) .. "\n")
  core.write_file(directory .. "/repro.py", template.program(made))
  return made
end

local Bundle = { __name = "repro" }

function Bundle.__tostring(bundle)
  local lines = { format("%s  %s, step %d", bundle.directory, core.printable(bundle.name), bundle.step) }
  for _, list in ipairs { bundle.inputs, bundle.outputs } do
    for _, entry in ipairs(list) do
      local what = entry.file and format("%s[%s]", entry.dtype, concat(entry.shape, ",")) or entry.constant or "missing: " .. entry.missing
      lines[#lines + 1] = format("  %-10s%s%s", entry.slot, core.printable(what), entry.note and "   " .. entry.note or "")
    end
  end
  lines[#lines + 1] = format("next: python3 %s/repro.py%s", bundle.directory, template.word(bundle))
  return concat(lines, "\n")
end

local function misuse(argument, wanted, given)
  core.raise("invalid_argument", format("repro: %s: %s is expected, not %s", argument, wanted,
    type(given) == "table" and "a table" or core.printable(tostring(given))), true)
end

--- Writes the operator's inputs, attributes and outputs into a new directory, with a program that runs it again.
---@param session msdbg.Session
---@param name string|msdbg.Node
---@param directory string  must not exist, or be empty
---@param given? { step?: integer, execution?: integer, rank?: integer, graph?: integer }
function M.repro(session, name, directory, given)
  if core.class_of(session) ~= "session" then misuse("session", "a session", session) end
  if core.class_of(name) ~= "node" and type(name) ~= "string" then misuse("node", "a node or its name", name) end
  if type(directory) ~= "string" then misuse("directory", "a path", directory) end
  local o = options.check("repro", given, { step = "number", execution = "number", rank = "number", graph = "number" })
  local node = core.class_of(name) == "node" and name or session:node(name, { rank = o.rank, graph = o.graph })
  if node.kind ~= "operator" then
    core.raise("invalid_argument", format("repro: %s is a %s; only operators run", node.name, node.kind), true)
  end
  if STRUCTURE[node.op] then
    core.raise("invalid_argument", format("repro: %s only orders or groups values; there is nothing to compute", node.name), true)
  end
  local where = { step = o.step or session.current_step, execution = o.execution }
  local made
  core.in_new_directory(directory, function(temporary) made = fill(session, node, where, temporary) end)
  made.directory = directory
  return setmetatable(made, Bundle)
end

core.members("session").repro = M.repro

--- Words: name=, directory=, step=, rank=, graph=, execution=.
---@return string text
---@return integer exit_status  4 when an input is missing
function M.main(session, ...)
  local asked = {}
  for _, word in ipairs { ... } do
    local key, value = word:match "^([%w_]+)=(.*)$"
    asked[key] = value
  end
  local bundle = M.repro(session, asked.name, asked.directory, { step = tonumber(asked.step), rank = tonumber(asked.rank),
    graph = tonumber(asked.graph), execution = tonumber(asked.execution) })
  local status = 0
  for _, entry in ipairs(bundle.inputs) do
    if entry.missing then status = 4 end
  end
  return Bundle.__tostring(bundle) .. "\n", status
end

return M
