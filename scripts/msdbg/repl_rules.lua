-- Rules at the prompt: `help RULE`, `?RULE`, and completion.
local registry = require "msdbg.repl_registry"

local concat, format = table.concat, require "msdbg.format".line
local ipairs, pairs, require, tostring = ipairs, pairs, require, tostring

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

function registry.rule_list() return (require "msdbg.rule_library".list()) end

--- The description of the rule with that name or abbreviation, or nil.
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

