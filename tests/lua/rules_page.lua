-- docs/rules-shipped.md from the metadata of the shipped rules.
local concat, format, sort = table.concat, string.format, table.sort

local M = {}

local head = [[
# Built-in rules

Generated from the rule files in `scripts/rules`; a test keeps this page up to date. Comments in these files explain the limits.

```sh
msdbg check DUMP                                    # the rules tagged default
msdbg check DUMP --rules "default or recommended"
msdbg check DUMP --rules "gradient and not vanishing-gradient" --param exploding-gradient.growth=100
msdbg rules info dead-relu
```

Rules tagged **default** stay silent on a healthy training. The others look closer, or report what is a fault in some networks only. Rules on
change do not check the first step, because there is nothing to compare it with, except update-too-large where the inputs of operators were
dumped. The seventeen conditions of the catalogue are also rules,
under their ids: [conditions.md](conditions.md).
]]

local function cell(text) return (text:gsub("|", "\\|"):gsub("\n", " ")) end

local function is_default(rule)
  for _, tag in ipairs(rule.tags) do
    if tag == "default" then return true end
  end
  return false
end

local function shown(value)
  if type(value) ~= "number" then return tostring(value) end
  if value % 1 == 0 and value > -1e5 and value < 1e5 then return format("%d", value) end
  for digits = 1, 17 do
    local text = format("%." .. digits .. "g", value)
    if tonumber(text) == value then return text end
  end
  return tostring(value)
end

local function interval(spec)
  if spec.choices then return concat(spec.choices, ", ") end
  if spec.min and spec.max then return format("%s to %s", shown(spec.min), shown(spec.max)) end
  if spec.min then return "from " .. shown(spec.min) end
  if spec.max then return "to " .. shown(spec.max) end
  return ""
end

local function params(lines, rule)
  local names = {}
  for name in pairs(rule.params or {}) do names[#names + 1] = name end
  if #names == 0 then return end
  sort(names)
  lines[#lines + 1] = "\n| parameter | default | accepted | |\n|---|---|---|---|"
  for _, name in ipairs(names) do
    local spec = rule.params[name]
    local default = shown(spec.default) .. (spec.unit and " " .. spec.unit or "")
    lines[#lines + 1] = format("| `%s` | %s | %s | %s |", name, default, interval(spec), cell(spec.help or ""))
  end
end

local function selection(rule)
  local slots = rule.slots and rule.slots ~= "output" and format(", slots %s", rule.slots) or ""
  if type(rule.select) == "string" then return format("`%s`%s", rule.select, slots) end
  return "nodes that the rule picks from the graph" .. slots
end

local function decision(rule)
  if rule.when then return format("a hit when `%s`", rule.when) end
  if rule.compares then return "a hit when a value differs between " .. rule.compares .. " that must share it" end
  return "decided by a function" .. (rule.step_end and ", at the end of each step" or "") .. (rule.finish and ", at the end of the run" or "")
end

local function section(lines, rule)
  lines[#lines + 1] = format("\n### %s\n", rule.name)
  lines[#lines + 1] = format("%s. *%s*; tags %s.\n", rule.summary:gsub("^%l", string.upper), rule.severity or "warning",
    concat(rule.tags, ", "))
  lines[#lines + 1] = format("- Checks %s: %s", selection(rule), decision(rule))
  lines[#lines + 1] = "- Cause: " .. rule.cause
  lines[#lines + 1] = "- Next: " .. rule.next
  params(lines, rule)
end

--- The page. `families` are lists of rules with a `title` each.
function M.markdown(families)
  local lines = { head }
  lines[#lines + 1] = "| rule | default | severity | finding |\n|---|---|---|---|"
  for _, family in ipairs(families) do
    for _, rule in ipairs(family) do
      lines[#lines + 1] = format("| [%s](#%s) | %s | %s | %s |", rule.name, rule.name, is_default(rule) and "yes" or "",
        rule.severity or "warning", cell(rule.summary))
    end
  end
  for _, family in ipairs(families) do
    lines[#lines + 1] = format("\n## %s", family.title)
    for _, rule in ipairs(family) do section(lines, rule) end
  end
  return concat(lines, "\n") .. "\n"
end

M.is_default = is_default

return M
