-- The guide: from "it does not train" to a list of findings, chapter by chapter. `msdbg guide DUMP`, or `guide` at the prompt.
local core = require "msdbg.core"
local causes = require "msdbg.guide_causes"
local chapters = require "msdbg.guide_chapters"
local choices = require "msdbg.guide_choices"
local rule_library = require "msdbg.rule_library"
local tools = require "msdbg.guide_tools"
local training = require "msdbg.training"

local fmt, ipairs, pairs, table, type = string.format, ipairs, pairs, table, type

local M = {}

local Checklist = {}
Checklist.__index = Checklist

local function add(checklist, kind, text, next_step, command, step)
  -- What was so before step k, at k - 0.5, began in the step before.
  step = step and math.floor(step)
  local entry = { chapter = checklist.chapter, kind = kind, text = text, next = next_step, command = command, step = step }
  checklist.entries[#checklist.entries + 1] = entry
  local mark = kind == "finding" and "!" or kind == "unknown" and "?" or kind == "note" and "-" or " "
  checklist.say(fmt("  %s %s", mark, text))
  if next_step then checklist.say("      " .. next_step) end
  if command then checklist.say("      > " .. command) end
end

--- Something is wrong. `next_step` says what to do, `command` what to type at the prompt, `step` where it began, if that is known.
function Checklist:finding(text, next_step, command, step)
  self.found = self.found + 1
  add(self, "finding", text, next_step, command, step)
end
--- Checked and in order.
function Checklist:fine(text) add(self, "fine", text) end
--- Could not be checked.
function Checklist:unknown(text, next_step) add(self, "unknown", text, next_step) end
--- A fact that helps to judge the rest.
function Checklist:note(text) add(self, "note", text) end

--- A question that the data cannot answer. Without a person it is not asked and stays open.
function Checklist:ask(q)
  local answer = self.answers[q.key]
  if answer == nil and self.read then
    self.say("  ? " .. q.question)
    self.say("      y: yes   n: no   Enter: do not know")
    local line = self.read()
    answer = line and line:match("^%s*(.-)%s*$"):lower()
    if answer and ("yes"):sub(1, #answer) ~= answer and ("no"):sub(1, #answer) ~= answer then
      self.say(fmt("      '%s' is neither y nor n", answer))
      line = self.read()
      answer = line and line:match("^%s*(.-)%s*$"):lower()
    end
    answer = answer and answer:sub(1, 1)
  end
  if answer == "y" or answer == true then return self:fine(q.yes .. " (your answer)") end
  if answer == "n" or answer == false then return self:finding(q.question .. " No.", q.no) end
  self:unknown((self.read and "not answered: " or "not asked, treated as unknown: ") .. q.open, q.no)
end

-- Names of the nodes of some hits, each once, with the first step in which it was found.
local function places(s, hits)
  local words, seen = {}, {}
  for _, hit in ipairs(hits) do
    if not seen[hit.node] then words[#words + 1] = fmt("%s in step %d", tools.short(s, hit.node), hit.step) end
    seen[hit.node] = true
  end
  return words
end

--- Reports the findings of default rules, each rule once. True if any of them found something.
---@param names string[]
function Checklist:rules(names)
  local any = false
  for _, name in ipairs(names) do
    local hits = self.result_of[name]
    if hits and not self.told[name] then
      local made, words = rule_library.get(name), places(self.session, hits)
      local detail = hits[1].details.message
      local text = fmt("%s: %s%s", made.summary, tools.some(words),
        detail and fmt(#words == 1 and " (%s)" or " (the first: %s)", detail) or "")
      local behind = causes.behind(self.causes, hits)
      if behind then
        self:note(fmt("%s; follows from %s", text, behind))
      elseif made.severity == "info" then
        self:note(text)
      else
        self:finding(text, made.next, fmt("check --rules %s", name), hits[1].step)
      end
    end
    self.told[name] = true
    any = any or hits ~= nil
  end
  return any
end

--- Reports the findings of default rules that no chapter has named.
function Checklist:other_rules()
  local names = {}
  for name in pairs(self.result_of) do names[#names + 1] = name end
  table.sort(names)
  self:rules(names)
end

local OPTIONS = { read = "function", say = "function", answers = "table", steps = "number", origin = "table" }

local function check_options(options)
  local known = {}
  for name in pairs(OPTIONS) do known[#known + 1] = name end
  for name, given in pairs(options) do
    if not OPTIONS[name] then
      local close = core.nearest(tostring(name), known, 1)[1]
      core.raise("invalid_argument", fmt("guide: no option '%s'%s", tostring(name), close and fmt(" (did you mean '%s'?)", close) or ""))
    elseif type(given) ~= OPTIONS[name] then
      core.raise("invalid_argument", fmt("guide: %s: a %s is expected, not a %s", name, OPTIONS[name], type(given)))
    end
  end
end

-- The steps that are checked: the first ones and the last ones, where a training goes wrong and where it shows.
local function choose_steps(all, limit)
  if #all <= limit then return all end
  local chosen, head = {}, math.ceil(limit / 2)
  for i = 1, head do chosen[i] = all[i] end
  for i = #all - (limit - head) + 1, #all do chosen[#chosen + 1] = all[i] end
  return chosen
end

-- Pairs of consecutive steps of the dump; the steps around the gap in the middle are not a pair.
local function pairs_of(all, chosen)
  local place, list = {}, {}
  for i, step in ipairs(all) do place[step] = i end
  for i = 2, #chosen do
    if place[chosen[i]] == place[chosen[i - 1]] + 1 then list[#list + 1] = { chosen[i - 1], chosen[i] } end
  end
  return list
end

-- Facts for several chapters: the findings of the rules, the weights, the losses, the actions of the loss scale.
local function prepare(checklist, s)
  checklist.pairs = pairs_of(s.steps, checklist.steps)
  checklist.result_of, checklist.told = {}, { tensor_overflow = true }
  local result = s:check { rules = "default or learning" }
  checklist.hits, checklist.causes = result.hits, result.causes or {}
  for _, hit in ipairs(checklist.hits) do
    checklist.result_of[hit.rule] = checklist.result_of[hit.rule] or {}
    table.insert(checklist.result_of[hit.rule], hit)
  end
  checklist.trained, checklist.frozen = training.weights(s)
  local graphs, several = nil, false
  for _, node in ipairs(checklist.trained) do
    several = several or graphs ~= nil and graphs ~= node.graph_id
    graphs = graphs or node.graph_id
  end
  checklist.adversarial = several
  checklist.losses = choices.losses(s, checklist.steps)
  checklist.learns = choices.falls(checklist.losses)
  checklist.skips, checklist.scales = training.loss_scale_skips(s)
end

-- What counts as bad: NaN or Inf, but not gradients that the loss scale has handled.
local function unanswered(s)
  local answered = training.answered_overflow(s)
  return answered and function(t) return tools.bad_count(t.stats) > 0 and not answered(t) end
end

--- Runs the chapters over an open session.
---@param s msdbg.Session
---@param options? { read?: fun(): string?, say?: fun(line: string), answers?: table<string, boolean>, steps?: integer }
---@return table result  docs/json.md, and origin
function M.run(s, options)
  options = options or {}
  check_options(options)
  if #s.steps == 0 then core.raise("no_data", "guide: the session has no step with data; the command doctor says what is there", true) end
  local checklist = setmetatable({
    session = s, entries = {}, found = 0, answers = options.answers or {}, read = options.read,
    say = function(line) if options.say then options.say(core.printable(line)) end end,
    steps = choose_steps(s.steps, options.steps or 8),
  }, Checklist)
  if #checklist.steps < #s.steps then
    checklist.say(fmt("%d of %d steps are checked: the first and the last ones", #checklist.steps, #s.steps))
  end
  prepare(checklist, s)
  checklist.origin = options.origin or core.origin(s, { when = unanswered(s) })
  for i, entry in ipairs(chapters.order) do
    checklist.chapter = entry[2]
    checklist.say(fmt("%d. %s", i, entry[2]))
    entry[3](checklist)
  end
  local result = core.guide_answer(s, { steps = checklist.steps, entries = checklist.entries })
  result.origin = checklist.origin
  checklist.say("")
  checklist.say(result.verdict)
  return result
end

return M
