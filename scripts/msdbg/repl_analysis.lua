-- Commands for what needs more than one tensor, or more than one condition: rules, comparisons.
local core = require "msdbg.core"
local registry = require "msdbg.repl_registry"

local command, need, number = registry.command, registry.need, registry.number
local concat, format = table.concat, string.format
local ipairs, pairs, require, tonumber, tostring = ipairs, pairs, require, tonumber, tostring

local function rule_text(made)
  local rows = { { "rule", made.name .. (made.abbr and " (" .. made.abbr .. ")" or "") .. "  " .. made.summary } }
  local function add(name, text)
    if text and text ~= "" then rows[#rows + 1] = { name, text } end
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
    add(i == 1 and "params" or "", format("%s = %s  %s", name, tostring(spec.default), spec.help or ""))
  end
  add("file", made.file or "catalogue")
  return registry.align(rows)
end

command {
  name = "rules", usage = "rules [NAME | CHOICE]", summary = "rules that check --rules can run, or one of them", complete = "rule",
  details = "CHOICE joins names and tags: default and not slow.", examples = { "rules default", "rules dead_relu", "check --rules default" },
  run = function(_, rest)
    local rules = require "msdbg.rules"
    local list, known = rules.list()
    for _, made in ipairs(list) do
      if made.name == rest or made.abbr and made.abbr == rest then return rule_text(made) end
    end
    if rest ~= "" then list = rules.list { rules = rest } end
    local rows = { { "rule", "short", "tags", "" } }
    for _, made in ipairs(list) do rows[#rows + 1] = { made.name, made.abbr or "", concat(made.tags, ","), made.summary } end
    local text = #list > 0 and registry.align(rows) or "no rule is chosen by that"
    for _, problem in ipairs(known.problems) do text = text .. "\nrule error: " .. problem.reason end
    return text
  end,
}

-- The rules, their names and tags, for completion.
function registry.rule_words()
  local words, seen = { "and", "or", "not" }, {}
  for _, made in ipairs((require "msdbg.rules".list())) do
    words[#words + 1] = made.name
    for _, tag in ipairs(made.tags) do
      if not seen[tag] then words[#words + 1] = tag end
      seen[tag] = true
    end
  end
  return words
end

command {
  name = "diff", usage = "diff PATH [--on SELECTOR] [--steps STEPS]", summary = "where this run parts from another one, the yardstick",
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
