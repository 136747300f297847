-- Rule libraries: finding rule files, reading them, and selecting rules.
--
-- A file runs in its own environment to build its tables; no function of a rule is called here.
local core = require "msdbg.core"
local catalogue = require "msdbg.rule_catalogue"
local choice = require "msdbg.rule_choice"
local rule = require "msdbg.rule"
local strict = require "msdbg.strict"

local format = string.format
local ipairs, pairs, setmetatable, type = ipairs, pairs, setmetatable, type

local M = {}

--- Time limit in seconds for one call of a rule's function, and for reading a rule file.
M.budget = 10

-- Rule files have no way to end the program during a check.
local function environment()
  local env = strict.environment()
  local os_copy = {}
  for name, value in pairs(os) do os_copy[name] = value end
  os_copy.exit = function() core.raise("invalid_argument", "os.exit: a rule cannot end the program") end
  rawset(env, "os", os_copy)
  return env
end

local function escaped(word) return (word:gsub("%p", "%%%0")) end

-- `return rule { ... }` is a tail call: when the rule module raises, the stack does not show the position. Find it in the text: the
-- line of the wrong field, else that of the rule's name, else that of `rule {`.
local function place_in(text, why)
  local name = why:match "^rule '([^']+)'"
  local at = name and text:find("%f[%w_]name%s*=%s*[\"']" .. escaped(name) .. "[\"']")
  local from, found = 1, at
  for start in text:gmatch "()%f[%w_]rule%s*[%({]" do
    if at and start < at or not at and not found then from, found = start, found or start end
  end
  local word = why:match "field '([^']+)'" or why:match "parameter '([^']+)'"
  if word then found = text:find("%f[%w_]" .. escaped(word) .. "%f[^%w_]%s*[\"%]]*%s*=", from) or found end
  local _, lines = text:sub(1, found or 1):gsub("\n", "")
  return lines + 1
end

-- Puts the position before the message. For a list, Lua knows only the line of `rule {`, or the script that caused the file to be
-- read.
local function named(why, path, text)
  local bare = text and (why:match "^[^\n]-:%d+: (rule '.*)$" or why:match "^[^\n]-:%d+: (rule: .*)$")
  if bare then why = bare elseif why:find(path, 1, true) then return why end
  return text and format("%s:%d: %s", path, place_in(text, why), why) or path .. ": " .. why
end

local function rules_in(value, path)
  if rule.is_rule(value) then return { value } end
  if type(value) ~= "table" or #value == 0 then
    local what = type(value) == "table" and "an empty table" or type(value)
    return nil, format("%s:1: the file returned %s; it has to return rule { ... } or a list of them", path, what)
  end
  for i, element in ipairs(value) do
    if not rule.is_rule(element) then return nil, format("%s:1: element %d of the returned list is not a rule { ... }", path, i) end
  end
  return value
end

--- The rules of one file; or nil and the reason why it could not be read, with file and line.
---@param path string or "embedded:rules/NAME.lua"
function M.read(path)
  local shown = path:gsub("^embedded:", "")
  local text, why = core.rule_text(path)
  if not text then return nil, named(why, shown) end
  local chunk, syntax = load(text, "@" .. shown, "t", environment())
  if not chunk then return nil, named(syntax, shown) end
  local ok, value = core.limited(M.budget, chunk)
  if not ok then return nil, named(value, shown, text) end
  local list, wrong = rules_in(value, shown)
  if not list then return nil, wrong end
  for _, made in ipairs(list) do made.file = shown end
  return list
end

-- ---- the registry

local Registry = {}
Registry.__index = Registry

function Registry:add(made, origin)
  local before = self.by_name[made.name:lower()]
  if before then
    if before.file == made.file then
      self:problem(made.name, format("%s: rule '%s' is defined twice in this file", made.file, made.name), origin)
    else
      self.notes[#self.notes + 1] = format("rule '%s' of %s is hidden by that of %s", made.name, made.file, before.file or "the catalogue")
    end
    return
  end
  made.origin = origin
  self.by_name[made.name:lower()] = made
  self.rules[#self.rules + 1] = made
end

function Registry:problem(name, why, origin) self.problems[#self.problems + 1] = { rule = name, reason = why, origin = origin } end

local function stem(path) return path:match "([^/]+)%.lua$" or path end

function Registry:add_file(path, origin)
  if self.read[path] then return end
  self.read[path] = true
  local list, why = M.read(path)
  if not list then return self:problem(stem(path), why, origin) end
  for _, made in ipairs(list) do
    self:add(made, origin)
  end
end

function Registry:add_path(path, origin, must)
  local files, why = core.rule_files(path)
  if not files then
    if must then core.raise("invalid_argument", format("--rule %s", why), true) end
    self.notes[#self.notes + 1] = format("%s: %s", origin, why)
    return
  end
  if must and #files == 0 then core.raise("invalid_argument", format("--rule %s: the directory has no *.lua", path), true) end
  for _, file in ipairs(files) do self:add_file(file, origin) end
end

-- The rules inside the program, or, for their developers, the files of MSDBG_DEV_SCRIPTS.
local function add_shipped(registry, places)
  if places.development then return registry:add_path(places.development, "MSDBG_DEV_SCRIPTS") end
  for _, name in ipairs(places.embedded) do registry:add_file("embedded:" .. name, "built in") end
end

local loaded = {}  -- paths given to M.load()

--- Reads every rule file in the order of the search path. Options: files (list of files and directories, searched first), trust
--- (read the project's rules), only_files (true: only `files`).
function M.registry(options)
  options = options or {}
  local self = setmetatable({ rules = {}, by_name = {}, notes = {}, problems = {}, read = {} }, Registry)
  for _, made in ipairs(catalogue.rules()) do self:add(made, "catalogue") end
  local places = core.rule_places()
  if places.script then self:add_path(places.script, "script") end
  for _, path in ipairs(options.files or {}) do self:add_path(path, "--rule", true) end
  for _, path in ipairs(loaded) do self:add_path(path, "--rule", true) end
  for _, path in ipairs(places.variable) do self:add_path(path, "MSDBG_RULE_PATH") end
  if places.project and (options.trust or M.trusted) then
    self:add_path(places.project, "project")
  elseif places.project then
    self.left_out = places.project
    self.notes[#self.notes + 1] = format("the rules of %s were left out; --trust reads them", places.project)
  end
  if places.user then self:add_path(places.user, "user") end
  add_shipped(self, places)
  return self
end

--- Adds a file or directory to the search path of this run; returns its rules.
---@param path string
---@return table[]
function M.load(path)
  if type(path) ~= "string" then core.raise("invalid_argument", "rules.load: a file or directory is expected") end
  local files, why = core.rule_files(path)
  if not files then core.raise("not_found", "rules.load: " .. why, true) end
  local list = {}
  for _, file in ipairs(files) do
    local rules, problem = M.read(file)
    if not rules then core.raise("invalid_argument", "rules.load: " .. problem, true) end
    for _, made in ipairs(rules) do list[#list + 1] = made end
  end
  loaded[#loaded + 1] = path
  M.forget()
  return list
end

local kept

--- Reads rule files again on next use.
function M.forget() kept = nil end

--- Reads the rules of the project from now on: the user has agreed.
function M.trust_project()
  M.trusted = true
  M.forget()
end

--- The registry of this run without additional files; read once.
function M.default_registry()
  kept = kept or M.registry()
  return kept
end

--- One rule by name or abbreviation; raises with the nearest names.
---@param name string
function M.get(name, registry)
  registry = registry or M.default_registry()
  local lower = name:lower()
  local found = registry.by_name[lower]
  if found then return found end
  local names = {}
  for _, made in ipairs(registry.rules) do
    if made.abbr and made.abbr:lower() == lower then return made end
    names[#names + 1] = made.name
  end
  for _, problem in ipairs(registry.problems) do
    if problem.rule == name then core.raise("invalid_argument", format("rule '%s': %s", name, problem.reason), true) end
  end
  core.raise("not_found", rule.suggest(format("no rule '%s'", name), name, names) .. "; the command rules shows them", true)
end

--- Describes rules without running any: a list of {name, abbr, summary, tags, severity, file, origin}.
---@param options? {rules?: string, files?: string[], trust?: boolean}
function M.list(options)
  options = options or {}
  local registry = (options.files or options.trust) and M.registry(options) or M.default_registry()
  local list = registry.rules
  if options.rules then list = choice.choose(options.rules, registry) end
  return list, registry
end

return M
