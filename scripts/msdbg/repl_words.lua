-- Reports speak to who types at a shell: `next: msdbg show DUMP NODE --step 0`. At the prompt of that dump it is `show NODE --step 0`.
local registry = require "msdbg.repl_registry"

local ipairs, pairs = ipairs, pairs

local M = {}

-- What reports say of options of the program, and what is typed here instead.
local HINTS = {
  [" Grouped by scope: --group; all columns: --wide; machine readable: --format json"] = " Beside the lines of your program: list.",
  [" (all: --wide)"] = " (all: s.last_result.rule_problems)",
}

-- The same command of the prompt with what stands behind the dump; nil where it does not know an option of the line.
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
  for hint, here in pairs(HINTS) do
    local first, last = text:find(hint, 1, true)
    if first then text = text:sub(1, first - 1) .. here .. text:sub(last + 1) end
  end
  if not session or session.state == "closed" then return text end
  local source = session.info.source
  return (text:gsub("(next:? +)(msdbg [^\n]*)", function(before, line) return before .. (typed_here(line, source) or line) end))
end

return M
