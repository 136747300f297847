-- docs/reference.md: commands of the prompt and the Lua API, from the same texts that `help` shows.
local commands = require "msdbg.repl_commands"
local reference = require "msdbg.reference"

local concat, format = table.concat, string.format
local ipairs = ipairs

local M = {}

-- Text inside of a table cell.
local function cell(text) return (text:gsub("|", "\\|")) end

local function add_commands(lines)
  lines[#lines + 1] = "## Commands of the prompt\n"
  lines[#lines + 1] = "Details and options: `help COMMAND`. An unambiguous beginning of a name is enough.\n"
  lines[#lines + 1] = "| command | short | does |\n|---|---|---|"
  for _, definition in ipairs(commands.list()) do
    lines[#lines + 1] = format("| `%s` | %s | %s |", cell(definition.usage), concat(definition.also or {}, " "), cell(definition.summary))
  end
  lines[#lines + 1] = ""
end

local function add_class(lines, class)
  lines[#lines + 1] = format("## %s\n", class.name)
  if class.doc ~= "" then lines[#lines + 1] = class.doc .. "\n" end
  if #class.fields > 0 then
    lines[#lines + 1] = "| field | type | |\n|---|---|---|"
    for _, field in ipairs(class.fields) do
      local kind = field.type .. (field.optional and "?" or "")
      lines[#lines + 1] = format("| `%s` | `%s` | %s |", cell(field.name), cell(kind), cell(field.text))
    end
    lines[#lines + 1] = ""
  end
  for _, member in ipairs(class.functions) do
    lines[#lines + 1] = format("- `%s`%s", reference.signature(member), member.doc ~= "" and ": " .. member.doc or "")
    for _, param in ipairs(member.params) do
      local name = param.name .. (param.optional and "?" or "")
      lines[#lines + 1] = format("  - `%s`: `%s`%s", name, param.type, param.text ~= "" and ", " .. param.text or "")
      local options = reference.options_of(param)
      for _, field in ipairs(options and options.fields or {}) do
        local key = field.name .. (field.optional and "?" or "")
        lines[#lines + 1] = format("    - `%s`: `%s`%s", key, field.type, field.text ~= "" and ", " .. field.text or "")
      end
    end
    for _, result in ipairs(member.returns) do
      if result.text ~= "" then lines[#lines + 1] = format("  - gives `%s`: %s", result.type, result.text) end
    end
    for _, example in ipairs(member.examples) do lines[#lines + 1] = format("  - e.g. `%s`", example) end
  end
  if #class.functions > 0 then lines[#lines + 1] = "" end
end

--- The whole page.
---@return string
function M.markdown()
  local all = reference.load()
  local lines = { "# Reference\n",
    "Made by `tools/reference` from the stubs in `scripts/meta` and the commands of the prompt; a test keeps it true.",
    "Explained with examples: [lua.md](lua.md), [prompt.md](prompt.md).\n" }
  add_commands(lines)
  for _, class in ipairs(all.classes) do
    if not reference.is_options(class) and #class.fields + #class.functions > 0 then add_class(lines, class) end
  end
  if #all.aliases > 0 then
    lines[#lines + 1] = "## Names of types\n"
    for _, alias in ipairs(all.aliases) do lines[#lines + 1] = format("- `%s` = `%s`", alias.name, alias.text) end
    lines[#lines + 1] = ""
  end
  return (concat(lines, "\n"):gsub("\n+$", "\n"))
end

return M
