-- Calls every public function with arguments of any type and value. A call may raise an error, but the program must survive, and no
-- error may be internal. The choices come from a seed or from bytes, which lets a fuzzer make them.
--
--   local calls = dofile "random_calls.lua"
--   local told = calls.run(calls.from_seed(1), { count = 10000, sessions = { function() return msdbg.open "fake" end } })
local core = require "msdbg.core"
local ffi = require "ffi"
local msdbg = require "msdbg"

local M = {}

-- ---- choices

--- A source of choices: next(n) returns 0 to n - 1.
function M.from_seed(seed)
  local state = seed % 2147483646 + 1
  return {
    next = function(n)
      state = state * 16807 % 2147483647
      return state % n
    end,
    done = function() return false end,
  }
end

--- Two bytes per choice; after the last one every choice is 0 and done() is true.
function M.from_bytes(text)
  local at = 1
  return {
    next = function(n)
      local high, low = text:byte(at, at + 1)
      at = at + 2
      return ((high or 0) * 256 + (low or 0)) % n
    end,
    done = function() return at > #text end,
  }
end

local function one_of(source, list) return list[source.next(#list) + 1] end

-- ---- values

local numbers = {
  0, 1, 2, 3, -1, 0.5, -0.5, 7, 20, 255, 1000, 65536, 2 ^ 31 - 1, 2 ^ 31, 2 ^ 32, 2 ^ 53, -2 ^ 53, 2 ^ 63, 1e300, -1e300, 1e-320, 0 / 0,
  1 / 0, -1 / 0,
}

-- No name is absolute or contains "..": some functions write files.
local texts = {
  "", "x", "**", "@all", "op:Log", "=fc.weight", "fc.weight", "Default/net/Log-op0", "Log-op0:0", "MatMul-op0", "no such thing", "TO",
  "nan", "inf", "x > 1", "abs(x) > mean(x)", "max(x) > 1e4", "count(x > 0)", "prev", "0:10", "0:1", "1,2", "all", "-1", "mean", "std",
  "l2_norm", "hit", "step", "end", "input", "output", "output:0", "input:1", "tensor", "session", "float32", "float16", "int64",
  "string", "dump", "live", "json", "svg", "dot", "markdown", "table", "csv", "out.npy", "out.html", "out.md", "missing/out", "rule.lua",
  "default", "default and not slow", "dead-relu", "compat", "finite", "a\nb", "\27[31m", "\0", "a\0b", "\255\254", "gr\195\188n",
  "%d %s %q", ("long "):rep(2000), "(", ")", "((((", "'", '"', "not", "[1, 2", '{"a": [1, 2.5, null]}', "1e999",
  "loss: 1.5\nloss: 1.4\n", "return 1",
}

local keys = {
  "on", "when", "step", "steps", "rank", "ranks", "graph", "execution", "slots", "limit", "bins", "rows", "width", "name", "optional",
  "enabled", "elements", "timeout", "n", "node", "wait", "port", "bind", "record", "history", "mem_limit", "threads", "semantics",
  "rules", "rule_files", "params", "profile", "trust", "rule_budget", "max_hits", "report_missing", "previous", "sort", "slice", "axes",
  "min", "max", "ascii", "colour", "log", "labels", "map", "rtol", "atol", "tolerance", "steps_a", "steps_b", "graph_a", "up", "file",
  "root", "around", "hops", "mode", "path", "net_name", "version", "pattern", "column", "indent", "guide", "tensors", "layers", "key",
  "by_content", "net", "values", "shape", "dtype", "inputs", "op", "slot", "check", "rule", "needs", "finish", "step_end", "budget",
  "turn", "severity", "value", "loss", "source", "align", "title", "text", "kind", "chapter", "next",
}

local function throw() error "thrown by an argument" end

local metatables = {
  { __index = throw, __newindex = throw, __tostring = throw, __len = throw, __call = throw, __eq = throw, __lt = throw, __concat = throw },
  { __index = function(_, key) return key end, __tostring = function() return 7 end, __call = function(_, ...) return ... end },
  { __index = function() return {} end, __tostring = function() return "\27[2J" end },
  { __metatable = false }, { __mode = "kv" }, { __name = {} },
}

local functions = {
  function() end, function() return true end, function() return false end, function(...) return ... end, throw, function() error { code = {} } end,
  function() return {} end, function() return { actual = 1, not_checked = {}, [1] = 2, text = "x" } end, function() return "text" end,
  function(x) return x > 0 end, function(t) return t.stats.max > 1 end, function(t) return t:view()[0] > 0 end, coroutine.yield,
  function() return 0 / 0 end, function(x) return x.name end, function(x) return x:close() end, tostring,
}

local value  -- forward declaration

local function list_of(source, world, depth)
  local list = {}
  for i = 1, source.next(5) do list[i] = value(source, world, depth + 1) end
  if source.next(8) == 0 then list[source.next(4)] = nil end
  return list
end

local function options_of(source, world, depth)
  local options = {}
  for _ = 1, source.next(5) do options[one_of(source, keys)] = value(source, world, depth + 1) end
  return options
end

local function table_of(source, world, depth)
  local made = source.next(2) == 0 and list_of(source, world, depth) or options_of(source, world, depth)
  local kind = source.next(12)
  if kind == 0 then made[1] = made end
  if kind == 1 then made.self = made end
  if kind == 2 then
    local key = value(source, world, 9)
    if key ~= nil and key == key then made[key] = 1 end
  end
  if kind >= 10 then setmetatable(made, one_of(source, metatables)) end
  return made
end

local function cdata_of(source)
  local made = { ffi.new "int64_t", ffi.new("uint64_t", -1), ffi.new "double[2]", ffi.new("struct { int x; }"), core.json_null }
  return made[source.next(#made) + 1]
end

function value(source, world, depth)
  local kind = source.next(depth > 2 and 7 or 12)
  if kind == 0 then return nil end
  if kind == 1 then return source.next(2) == 0 end
  if kind == 2 or kind == 3 then return one_of(source, numbers) end
  if kind == 4 or kind == 5 then return one_of(source, texts) end
  if kind == 6 then return one_of(source, functions) end
  if kind == 7 or kind == 8 then return table_of(source, world, depth) end
  if kind == 9 then return cdata_of(source) end
  return world:any(source)
end

-- ---- the functions to call

-- Excluded: functions that wait for a user or another process, that end a test run, or that replace parts of the library itself.
local closed_modules = { test = true, strict = true, init = true, guide = true, reference_page = true }
local closed_functions = {
  ["core.record"] = true, ["core.rule_memory"] = true, ["core.limited"] = true,
  ["core.abi_text"] = true, ["core.feed_shell"] = true, ["progress.run"] = true,
}

local function add_functions(into, space, name, seen)
  if seen[space] then return end
  seen[space] = true
  for key, member in pairs(space) do
    local full = name .. "." .. tostring(key)
    if type(member) == "function" and not closed_functions[full] then
      into[#into + 1] = { name = full, call = member }
    elseif type(member) == "table" and type(key) == "string" and getmetatable(member) == nil then
      add_functions(into, member, full, seen)
    end
  end
end

local function all_functions()
  local list, seen = {}, {}
  add_functions(list, msdbg, "msdbg", seen)
  add_functions(list, core, "core", seen)
  for _, path in ipairs(core.embedded_names()) do
    local name = path:match "^msdbg/([%w_]+)%.lua$"
    if name and not closed_modules[name] and not name:find "^repl" and not name:find "^guide" then
      local module = require("msdbg." .. name)
      if type(module) == "table" then add_functions(list, module, name, seen) end
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

--- Arrays and pointers that a script made itself have no bounds: LuaJIT reads whatever is there.
local function bounded(object)
  local raw = type(object) == "cdata" and tostring(ffi.typeof(object)):find "[%[%*]"
  if raw then error "memory without bounds" end
  return object
end

local function all_members()
  local list = {}
  for _, class in ipairs(core.classes()) do
    local methods, fields = core.members(class)
    for name, call in pairs(methods) do list[#list + 1] = { name = class .. ":" .. name, class = class, call = call } end
    for name in pairs(fields) do
      list[#list + 1] = { name = class .. "." .. name, class = class, call = function(object) return object[name] end }
    end
    list[#list + 1] = { name = "tostring " .. class, class = class, call = tostring }
    list[#list + 1] = { name = class .. "[]", class = class, call = function(object, key) return bounded(object)[key] end }
    list[#list + 1] = { name = class .. "[] =", class = class, call = function(object, key, to) bounded(object)[key] = to end }
    list[#list + 1] = { name = class .. " ==", class = class, call = function(object, other) return object == other, #object end }
  end
  list[#list + 1] = { name = "view[]", class = "view", call = function(view, key) return bounded(view)[key] end }
  list[#list + 1] = { name = "view[] =", class = "view", call = function(view, key, to) bounded(view)[key] = to end }
  list[#list + 1] = { name = "view:doubles", class = "view", call = function(view, ...) return view:doubles(...) end }
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- ---- the objects to call

local World = {}
World.__index = World

local function class_of(object)
  if type(object) == "userdata" then return core.class_of(object) end
  if getmetatable(object) == "view" then return "view" end
end

function World:keep(object)
  local class = class_of(object)
  if not class then return end
  self[class] = self[class] or {}
  local list = self[class]
  if #list < 6 then list[#list + 1] = object else list[self.turn % 6 + 1] = object end
  self.turn = self.turn + 1
end

function World:fill(makers)
  for _, make in ipairs(makers) do
    local s = make()
    self:keep(s)
    for _, t in ipairs(s:tensors { steps = "all" }) do self:keep(t) end
    local t = s:tensors {}[1]
    self:keep(s:nodes "**")
    self:keep(s:nodes("**")[1])
    self:keep(t and t:view())
    self:keep(s:watch { on = "**", when = "TO" })
    if s.can.step then self:keep(s:step()) else self:keep(s:check {}) end
    self:keep(msdbg.origin(s))
    self:keep(msdbg.report(s, s.last_result))
    local steps = s.steps
    if #steps > 1 then self:keep(msdbg.diff(s, { steps_a = steps[1], steps_b = steps[#steps] })) end
  end
end

function World:one(source, class)
  local list = self[class]
  return list and one_of(source, list)
end

function World:any(source)
  local classes = self.classes
  return self:one(source, classes[source.next(#classes) + 1])
end

-- ---- calls

local function described(name, count, arguments)
  local parts = {}
  for i = 1, count do
    local argument = arguments[i]
    local ok, text = pcall(tostring, argument)
    parts[i] = type(argument) == "string" and ("%q"):format(argument:sub(1, 60)) or ok and tostring(text):sub(1, 80) or type(argument)
  end
  return name .. "(" .. table.concat(parts, ", ") .. ")"
end

--- Runs `count` calls, or as many as the source has choices for. Returns how many ran, and how many of them raised an error.
---@param options { count: integer, sessions: (fun(): msdbg.Session)[], before?: fun(text: string) }
function M.run(source, options)
  local world = setmetatable({ turn = 0 }, World)
  world.classes = core.classes()
  world.classes[#world.classes + 1] = "view"
  world:fill(options.sessions)
  local calls = all_functions()
  for _, member in ipairs(all_members()) do calls[#calls + 1] = member end
  local told = { calls = 0, raised = 0, functions = #calls }
  while told.calls < options.count and not source.done() do
    told.calls = told.calls + 1
    local target = one_of(source, calls)
    local arguments, count = {}, source.next(5)
    for i = 1, count do arguments[i] = value(source, world, 0) end
    if target.class and source.next(10) > 0 then
      arguments[1] = world:one(source, target.class)
      count = math.max(count, 1)
    elseif count > 0 and source.next(3) > 0 then
      arguments[1] = world:one(source, "session")
      if source.next(2) == 0 then arguments[1] = world:one(source, "tensor") end
    end
    if options.before then options.before(described(target.name, count, arguments)) end
    local call, results = source.next(6) == 0 and coroutine.wrap(target.call) or target.call, {}
    local ok, why = core.limited(20, function() results = { pcall(call, unpack(arguments, 1, count)) } end)
    local problem = results[2]
    if not ok or not results[1] and tostring(problem):find "stopped after" then
      error(described(target.name, count, arguments) .. " does not end: " .. tostring(why or problem), 0)
    elseif results[1] then
      for i = 2, 5 do world:keep(results[i]) end
    else
      told.raised = told.raised + 1
      if type(problem) == "table" and rawget(problem, "code") == "internal" then
        error(described(target.name, count, arguments) .. " is an internal error: " .. tostring(problem), 0)
      end
    end
    if told.calls % 500 == 0 then
      collectgarbage()
      world:fill(options.sessions)  -- some were closed
    end
  end
  return told
end

return M
