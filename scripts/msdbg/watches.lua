-- Watchpoints as text: lists for people, and files that make them again.
local core = require "msdbg.core"

local concat, format = table.concat, string.format
local ipairs, loadstring, pairs, setfenv, tostring, type = ipairs, loadstring, pairs, setfenv, tostring, type

local M = {}

--- The watchpoints with what the last check found of each.
---@param session msdbg.Session
---@return string
function M.list_text(session)
  local watches = session:watches()
  if #watches == 0 then return "no watchpoint; add one, e.g.: watch ** TO" end
  local result, found = session.last_result, {}
  if result and not result.from_rules then
    for _, hit in ipairs(result.hits) do found[hit.watch] = (found[hit.watch] or 0) + 1 end
  end
  local lines = {}
  for i, watch in ipairs(watches) do
    local n = found[watch.id]
    lines[i] = tostring(watch) .. (n and format("; %d hit%s in the last check", n, n == 1 and "" or "s") or "")
  end
  return concat(lines, "\n")
end

---@param session msdbg.Session
---@return string
function M.hits_text(session)
  local result = session.last_result
  if not result then return "no check yet; type check" end
  return tostring(result.hits) .. (result.interrupted and "\npartial: the check was interrupted" or "")
end

local function value_text(value)
  if type(value) ~= "number" then return format("%q", tostring(value)) end
  if value ~= value then return "0/0" end
  if value == math.huge or value == -math.huge then return value > 0 and "math.huge" or "-math.huge" end
  return value % 1 == 0 and format("%d", value) or format("%.17g", value)
end

local function one(watch, conditions)
  local parts = { format("on = %q", watch.on) }
  if watch.name then parts[#parts + 1] = format("name = %q", watch.name) end
  parts[#parts + 1] = format("when = %q", conditions[watch.rule] and watch.rule or watch.when)
  if conditions[watch.rule] then
    local names = {}
    for name in pairs(watch.params) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do parts[#parts + 1] = format("%s = %s", name, value_text(watch.params[name])) end
  end
  if watch.slots ~= "output" then parts[#parts + 1] = format("slots = %q", watch.slots) end
  if not watch.enabled then parts[#parts + 1] = "enabled = false" end
  return "s:watch { " .. concat(parts, ", ") .. " }"
end

--- Lines of Lua that make the watchpoints of a session again, and how many could not be written: functions have no text.
---@param session msdbg.Session
---@return string text
---@return integer written
---@return integer left_out
function M.lines(session)
  local conditions, lines, written, left_out = {}, {}, 0, 0
  for _, condition in ipairs(core.conditions()) do conditions[condition.id] = true end
  for _, watch in ipairs(session:watches()) do
    if type(watch.when) == "function" then
      lines[#lines + 1] = format("-- watchpoint %d%s has a function for a condition, which cannot be saved", watch.id,
        watch.name and " '" .. watch.name .. "'" or "")
      left_out = left_out + 1
    else
      lines[#lines + 1] = one(watch, conditions)
      written = written + 1
    end
  end
  return concat(lines, "\n") .. (#lines > 0 and "\n" or ""), written, left_out
end

--- Writes a file whole or not at all.
---@param path string
---@param text string
function M.write_file(path, text)
  local file, why = io.open(path .. ".new", "w")
  if not file then core.raise("io_error", format("cannot write %s", (why:gsub("%.new:", ":"))), true) end
  local ok, problem = file:write(text)
  local closed, close_problem = file:close()
  if not (ok and closed) then
    os.remove(path .. ".new")
    core.raise("io_error", format("cannot write %s: %s", path, problem or close_problem), true)
  end
  local renamed, rename_problem = os.rename(path .. ".new", path)
  if not renamed then core.raise("io_error", format("cannot write %s: %s", path, rename_problem), true) end
end

---@param path string
---@return string
function M.read_file(path)
  local file, why = io.open(path, "r")
  if not file then core.raise("not_found", format("cannot read %s", why), true) end
  local text, problem = file:read "*a"
  file:close()
  if not text then core.raise("io_error", format("cannot read %s: %s", path, problem or "not a file"), true) end
  return text
end

--- Makes the watchpoints of a file that save_watches wrote. The file sees the session's `watch` and nothing else.
---@param session msdbg.Session
---@param path string
---@return msdbg.Watch[]
function M.load(session, path)
  local chunk, why = loadstring(M.read_file(path), "@" .. path)
  if not chunk then core.raise("syntax", why, true) end
  local made = core.new_record "watches"
  local watch = function(_, options)
    made[#made + 1] = session:watch(options)
    return made[#made]
  end
  chunk = setfenv(chunk, { s = { watch = watch }, math = { huge = math.huge } })
  local ok, problem = pcall(chunk)
  if not ok then
    -- All or none: half a set of watchpoints would be taken for the whole.
    for _, one_made in ipairs(made) do one_made:remove() end
    core.raise("invalid_argument", format("load_watches: %s: %s", path, tostring(problem)), true)
  end
  return made
end

return M
