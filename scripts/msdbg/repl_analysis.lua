-- Commands for what needs more than one tensor, or more than one condition: rules, comparisons.
local core = require "msdbg.core"
local formats = require "msdbg.format"
local reference = require "msdbg.reference"
local registry = require "msdbg.repl_registry"
local watch_words = require "msdbg.watch_words"

local command, need, number = registry.command, registry.need, registry.number
local concat, format = table.concat, formats.line
local ipairs, pairs, require, tonumber, tostring = ipairs, pairs, require, tonumber, tostring

local function rule_text(made)
  local rows = { { "rule", made.name .. (made.abbr and " (" .. made.abbr .. ")" or "") .. "  " .. made.summary } }
  local function add(name, text)
    if text and text ~= "" then rows[#rows + 1] = { name, (text:gsub("%s*\n%s*", " ")) } end
  end
  add("tags", concat(made.tags, ", "))
  add("hits when", made.when or made.catalogue)
  add("cause", made.cause)
  add("next", made.next)
  local names = {}
  for name in pairs(made.params or {}) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local spec = made.params[name]
    local default = spec.default == nil and "(must be given)" or "= " .. tostring(spec.default)
    add(i == 1 and "params" or "", format("%s %s  %s", name, default, spec.help or ""))
  end
  add("file", made.file or "catalogue")
  return registry.align(rows)
end

registry.group "rules, other runs, ways through a run"

command {
  name = "rules", usage = "rules [NAME | CHOICE]", summary = "rules that check --rules can run, or one of them",
  complete = "rule",
  details = "CHOICE joins names and tags: default and not slow.",
  examples = { "rules default", "rules dead-relu", "check --rules default" },
  run = function(_, rest)
    local rules = require "msdbg.rule_library"
    local one = rest ~= "" and registry.rule_text(rest)
    if one then return one end
    local list, known = rules.list()
    if rest ~= "" then list = rules.list { rules = rest } end
    local rows = { { "rule", "short", "tags", "" } }
    for _, made in ipairs(list) do rows[#rows + 1] = { made.name, made.abbr or "", concat(made.tags, ","), made.summary } end
    local text = #list > 0 and registry.align(rows) or "no rule is chosen by that"
    for _, problem in ipairs(known.problems) do text = text .. format("\nrule error: %s", problem.reason) end
    return text
  end,
}

function registry.rule_list() return (require "msdbg.rule_library".list()) end

--- What is known of the rule of that name or abbreviation, or nil.
function registry.rule_text(word)
  for _, made in ipairs(registry.rule_list()) do
    if made.name == word or made.abbr and made.abbr == word then return rule_text(made) end
  end
end

-- The rules, their names and tags, for completion.
function registry.rule_words()
  local words, seen = { "and", "or", "not" }, {}
  for _, made in ipairs((require "msdbg.rule_library".list())) do
    words[#words + 1] = made.name
    for _, tag in ipairs(made.tags) do
      if not seen[tag] then words[#words + 1] = tag end
      seen[tag] = true
    end
  end
  return words
end

command {
  name = "diff", usage = "diff PATH [--on SELECTOR] [--steps STEPS]", summary = "where this run diverges from another one, the reference",
  complete = "file", examples = { "diff dumps/reference", "diff dumps/reference --steps 0:2 --rtol 1e-3" },
  options = { { "on", "SELECTOR", "compare only these nodes" }, { "steps", "STEPS", "which steps" }, { "rtol", "R", "relative tolerance" },
    { "atol", "A", "absolute tolerance" } },
  run = function(session, rest, options)
    local s, definition = need(session), registry.find "diff"
    if rest == "" then registry.usage(definition, "diff: against which dump?") end
    local tolerances = {}
    for _, name in ipairs { "rtol", "atol" } do
      tolerances[name] = options[name] and (tonumber(options[name]) or number(definition, options[name], "a number for --" .. name))
    end
    local other = core.open(rest)
    local result = core.diff(s, other, { on = options.on, steps = options.steps, rtol = tolerances.rtol, atol = tolerances.atol })
    local text = tostring(result)
    other:close()
    return text
  end,
}

local function place_of(definition, options)
  local place = {}
  for _, key in ipairs { "step", "rank" } do place[key] = options[key] and number(definition, options[key], "a " .. key) end
  return place
end

command {
  name = "bisect", usage = "bisect SELECTOR CONDITION | EXPRESSION", summary = "the first step in which something holds, by halving",
  complete = "watch", examples = { "bisect fc1.weight TO", "bisect @gradient max(abs(x)) > 100 --steps 0:50" },
  options = { { "steps", "STEPS", "search only these" }, { "ranks", "RANKS", "which ranks" } },
  run = function(session, rest, options)
    local s = need(session)
    local on, when = watch_words.of("bisect", rest)
    return tostring(s:bisect { on = on, when = when, steps = options.steps, ranks = options.ranks })
  end,
}

command {
  name = "trend", usage = "trend SELECTOR | TENSOR [STATISTIC]", summary = "a statistic over the steps, with change points",
  complete = "trend",
  details = "STATISTIC is a field of t.stats; abs_mean without one.",
  examples = { "trend fc1.weight", "trend @gradient l2_norm --steps 0:50" },
  options = { { "steps", "STEPS", "which, e.g. 0:10; default all" }, { "ranks", "RANKS", "which ranks" } },
  run = function(session, rest, options)
    local s = need(session)
    local statistics = reference.class("Stats").members
    local on, statistic = rest:match "^(.-)%s+([%a_][%w_]*)$"
    local last = statistic
    if not on or not statistics[statistic] then
      statistic, on = rest:match "^([%a_][%w_]*)%s+(.+)$"  -- the order of the command line
      if not on or not statistics[statistic] then on, statistic = rest, "abs_mean" end
    end
    if on == "" then registry.usage(registry.find "trend", "trend: which nodes?") end
    -- A name of two words: the second was meant to be a statistic.
    if on == rest and last and not on:find "[%(%\"]" and not on:find "%sand%s" and not on:find "%sor%s" and not on:find "^not%s" then
      local names = {}
      for name in pairs(statistics) do names[#names + 1] = name end
      table.sort(names)
      local close = core.nearest(last, names, 1)[1]
      local hint = close and format(" (did you mean '%s'?)", close) or "; there is " .. concat(names, ", ")
      registry.mistake(format("trend: no statistic '%s'%s", last, hint))
    end
    return tostring(s:trend(statistic, registry.state.held(on) or on, { steps = options.steps, ranks = options.ranks }))
  end,
}

command {
  name = "propagation", usage = "propagation TENSOR [--up]", summary = "how a bad tensor spread, or where it came from",
  complete = "tensor",
  options = { { "up", "", "where it came from" }, { "step", "N", "default: the current one" }, { "rank", "N", "where there are several" } },
  run = function(session, rest, options)
    local definition = registry.find "propagation"
    if rest == "" then registry.usage(definition, "propagation: which tensor?") end
    local place = place_of(definition, options)
    place.up = options.up and true
    return tostring(need(session):propagation(registry.state.held(rest) or rest, place))
  end,
}

command {
  name = "why", usage = "why TENSOR", summary = "why a tensor has no value", complete = "tensor",
  options = { { "step", "N", "default: the current one" }, { "rank", "N", "where there are several" } },
  run = function(session, rest, options)
    local definition = registry.find "why"
    if rest == "" then registry.usage(definition, "why: which tensor?") end
    return tostring(need(session):why(rest, place_of(definition, options)))
  end,
}

command {
  name = "list", also = { "l" }, usage = "list [FILE]", summary = "the user's program, its lines with findings", complete = "file",
  details = "Findings are those of the last check, or of one that is made now. FILE chooses one of the program's files.",
  run = function(session, rest)
    local s = need(session)
    if not s.last_result then registry.find("check").run(session, "", {}) end
    return tostring(s:source(s.last_result, { file = rest ~= "" and rest or nil }))
  end,
}
