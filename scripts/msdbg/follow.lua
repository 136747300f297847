-- The results of msdbg.bisect, trend, histogram, layers, replicas, settings, propagation, why and source: tables with the JSON keys, which
-- print as reports.
local core = require "msdbg.core"

local getmetatable, ipairs, rawget, setmetatable, type = getmetatable, ipairs, rawget, setmetatable, type

local M = {}

-- The core's answer for each table; it renders the other formats.
local answers = setmetatable({}, { __mode = "k" })

local function trimmed(text) return (text:gsub("\n+$", "")) end

local function class_of(name, formats)
  local methods = {}
  for _, format in ipairs(formats) do
    methods[format] = function(result) return core.follow_render(answers[result], format) end
  end
  local class = { __name = name }
  function class.__tostring(result) return trimmed(core.follow_render(answers[result], "table")) end
  function class.__index(result, key)
    local method = methods[key]
    if method then return method end
    return class.field and class.field(result, key)
  end
  return class
end

local classes = {
  bisect = class_of("bisect", { "table", "json", "jsonl" }),
  trend = class_of("trend", { "table", "json", "jsonl", "csv", "markdown" }),
  histogram = class_of("histograms", { "table", "json", "jsonl", "csv", "markdown" }),
  layers = class_of("layers", { "table", "json", "jsonl", "csv", "markdown" }),
  replicas = class_of("replicas", { "table", "json", "jsonl", "csv", "markdown" }),
  settings = class_of("settings", { "table", "json", "jsonl", "csv", "markdown" }),
  propagation = class_of("propagation", { "table", "json", "jsonl", "markdown", "dot", "svg" }),
  why = class_of("why", { "table", "json", "jsonl" }),
  source = class_of("source", { "table", "json", "jsonl", "markdown" }),
}

-- Most runs have one rank: its results are also fields of the result itself. Of several, those of the rank where it holds first.
local of_rank = {
  first = true, last_before = true, monotone = true, counterexample = true, reads = true, looked_at = true, probes = true,
  skipped = true, open = true, steps = true,
}
function classes.bisect.field(result, key)
  if not of_rank[key] then return nil end
  local ranks, first = rawget(result, "ranks"), rawget(result, "first_ranks")[1]
  for _, rank in ipairs(ranks) do
    if rank.rank == first then return rank[key] end
  end
  return ranks[1] and ranks[1][key]
end

local function made(kind, answer)
  local result = setmetatable(core.follow_tree(answer), classes[kind])
  answers[result] = answer
  return result
end

local function is_options(value) return type(value) == "table" and getmetatable(value) == nil end

function M.bisect(session, options)
  if not is_options(options) then options = { on = "@all", when = options } end
  return made("bisect", core.bisect(session, options))
end

function M.trend(session, statistic, on, options)
  if options == nil and is_options(on) and #on == 0 then on, options = nil, on end
  return made("trend", core.trend(session, statistic, on, options))
end

function M.histogram(session, tensor, options) return made("histogram", core.histogram(session, tensor, options)) end

function M.layers(session, options) return made("layers", core.layers(session, options)) end

function M.replicas(session, options) return made("replicas", core.replicas(session, options)) end

function M.settings(session, options) return made("settings", core.settings(session, options)) end

function M.propagation(session, tensor, options) return made("propagation", core.propagation(session, tensor, options)) end

function M.why(session, tensor, options) return made("why", core.why(session, tensor, options)) end

-- Default for the result: a check with the session's watchpoints.
function M.source(session, result, options)
  if options == nil and is_options(result) then result, options = nil, result end
  if result == nil then result = session:check() end
  return made("source", core.source(session, result, options))
end

local Plan = { __name = "plan" }
-- Prints as the file for MindSpore.
function Plan.__tostring(plan) return trimmed(plan.text) end

function M.plan(session, options)
  local plan, text = core.plan(session, options or {})
  plan.text = text
  return setmetatable(plan, Plan)
end

local methods = core.members "session"
for _, name in ipairs { "plan", "bisect", "trend", "histogram", "layers", "replicas", "settings", "propagation", "why", "source" } do
  methods[name] = M[name]
end

return M
