-- Reports speak to who types at a shell: `next: msdbg show DUMP NODE --step 0`. At the prompt of that dump it is `show NODE --step 0`.
local registry = require "msdbg.repl_registry"

local concat = table.concat
local ipairs = ipairs

local M = {}

-- What reports say of options of the program, and what is typed here instead; the first that fits.
local HINTS = {
  { " Grouped by scope: --group; all columns: --wide; machine readable: --format json", " Beside the lines of your program: list." },
  { "more for the same reason (all: --wide)", "more for the same reason (all: s.last_result.not_checked)" },
  { "more (all: --wide): ", "more (all: s.last_result.rule_problems): " },
  { " (all: --wide)", "" },
}

-- Every `what` in a text, as it is.
local function replace(text, what, with)
  local parts, at = {}, 1
  while true do
    local first, last = text:find(what, at, true)
    if not first then break end
    parts[#parts + 1] = text:sub(at, first - 1) .. with
    at = last + 1
  end
  return concat(parts) .. text:sub(at)
end

-- The same command of the prompt with what is after the dump; nil where it does not know an option of the line.
local function typed_here(line, source)
  local name, rest = line:match "^msdbg (%l[%w_]*) (.*)$"
  local definition = name and registry.find(name)
  if not definition then return end
  for _, spelling in ipairs { source, "'" .. source .. "'" } do
    if rest:sub(1, #spelling + 1) == spelling .. " " then
      rest = rest:sub(#spelling + 2)
      local known = {}
      for _, option in ipairs(definition.options or {}) do known[option[1]] = true end
      for option in rest:gmatch "%-%-([%a][%w%-]*)" do
        if not known[option] then return end
      end
      return name .. " " .. rest
    end
  end
end

--- A report in the words of the prompt.
---@param text string
---@param session msdbg.Session?
---@return string
function M.translate(text, session)
  text = text:gsub("(\n  %.%.%. %d+ more) %(all: %-%-wide%)\n", "%1 (all: hits)\n")  -- findings below a table
  for _, hint in ipairs(HINTS) do text = replace(text, hint[1], hint[2]) end
  if not session or session.state == "closed" then return text end
  local source = session.info.source
  return (text:gsub("(next:? +)(msdbg [^\n]*)", function(before, line) return before .. (typed_here(line, source) or line) end))
end

return M
