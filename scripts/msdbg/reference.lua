-- The annotated stubs of scripts/meta as data, for `help`, `?x`, `apropos` and docs/reference.md.
local core = require "msdbg.core"

local format = string.format
local ipairs, pairs, tostring, type = ipairs, pairs, tostring, type

local M = {}

local LONGEST_BRIEF = 110

-- Classes whose name in the virtual machine differs from the stub: `node set` becomes msdbg.NodeSet without an entry.
local stub_names = { watchpoint = "msdbg.Watch", ["check result"] = "msdbg.Result", ["origin result"] = "msdbg.Origins",
  ["diff result"] = "msdbg.Diff" }

--- The stub class of a class in the virtual machine: "node set" is msdbg.NodeSet.
---@param class string
---@return string
function M.stub_name(class)
  return stub_names[class] or "msdbg." .. (class:gsub("(%a)(%w*)%s?", function(first, rest) return first:upper() .. rest end))
end

-- Where a type ends: at the first space outside of brackets and quotes that does not follow `:`, `,` or `|`.
local function split_type(text)
  local depth, quoted = 0, false
  for i = 1, #text do
    local c = text:sub(i, i)
    if c == '"' then quoted = not quoted
    elseif not quoted and c:find "[%(%{%[<]" then depth = depth + 1
    elseif not quoted and c:find "[%)%}%]>]" then depth = depth - 1
    elseif c == " " and depth == 0 and not quoted and not text:sub(1, i - 1):find "[:,|]$" then
      return text:sub(1, i - 1), text:sub(i + 1)
    end
  end
  return text, ""
end

local function trim(text) return text:match "^%s*(.-)%s*$" end

local function parse_named(text)
  local name, optional, rest = text:match "^([%w_%.]+)(%??)%s+(.*)$"
  if not name then
    name, optional, rest = text:match "^(%b[])(%??)%s+(.*)$"
    if not name then return end
  end
  local kind, about = split_type(rest)
  return { name = name, type = kind, text = trim(about), optional = optional == "?" }
end

local function parse_return(text)
  local kind, rest = split_type(text)
  local name, about = rest:match "^([%a_][%w_]*)%s*(.*)$"
  -- Two spaces introduce the description, one space a name.
  if rest:sub(1, 1) == " " or not name then name, about = nil, rest end
  return { type = kind, name = name, text = trim(about) }
end

-- Reads one file into `into` = { classes = list, by_name = map, aliases = list }.
local function parse(text, into)
  local doc, params, returns, examples, variables, current = {}, {}, {}, {}, {}, nil
  local function reset() doc, params, returns, examples = {}, {}, {}, {} end
  local function class_of(name)
    local class = into.by_name[name]
    if not class then
      class = { name = name, doc = "", fields = {}, functions = {}, members = {} }
      into.by_name[name] = class
      into.classes[#into.classes + 1] = class
    end
    return class
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    local tag, rest = line:match "^%-%-%-@([%a]+)%s*(.-)%s*$"
    if tag == "class" then
      current = class_of(rest:match "^[%w_%.]+")
      current.parent = rest:match ":%s*([%w_%.]+)" or current.parent
      if #doc > 0 and current.doc == "" then current.doc = table.concat(doc, " ") end
      reset()
    elseif tag == "field" and current then
      local field = parse_named(rest)
      if field and not current.members[field.name] then
        current.fields[#current.fields + 1] = field
        current.members[field.name] = field
      end
    elseif tag == "alias" then
      local name, meaning = rest:match "^([%w_%.]+)%s+(.*)$"
      if name then into.aliases[#into.aliases + 1] = { name = name, text = meaning } end
      reset()
    elseif tag == "param" then
      local many = rest:match "^%.%.%.%s*(%S*)"
      params[#params + 1] = many and { name = "...", type = many, text = "" } or parse_named(rest)
    elseif tag == "return" then
      returns[#returns + 1] = parse_return(rest)
    elseif not tag and line:match "^%-%-%-e%.g%. " then
      examples[#examples + 1] = trim(line:sub(9))
    elseif not tag and line:match "^%-%-%-" then
      doc[#doc + 1] = trim(line:sub(4))
    elseif line:match "^local%s+[%w_]+%s*=%s*{}" and current then
      variables[line:match "^local%s+([%w_]+)"] = current
      reset()
    elseif line:match "^function%s" then
      local owner, separator, name, arguments = line:match "^function%s+([%w_]+)([%.:])([%w_]+)(%b())"
      local class = owner and variables[owner]
      if class and not class.members[name] then
        local made = { name = name, owner = owner, separator = separator, arguments = arguments, doc = table.concat(doc, " "),
          params = params, returns = returns, examples = examples, class = class.name }
        class.functions[#class.functions + 1] = made
        class.members[name] = made
      end
      reset()
    elseif line:match "^%s*$" then
      reset()
    end
  end
end

-- The files in reading order: the most important ones first.
local FIRST = { ["meta/msdbg.lua"] = 1, ["meta/session.lua"] = 2, ["meta/live.lua"] = 3, ["meta/node.lua"] = 4,
  ["meta/tensor.lua"] = 5, ["meta/watch.lua"] = 6 }

local loaded

--- All stubs: { classes = list in the order of the files, by_name = map, aliases = list }.
function M.load()
  if loaded then return loaded end
  local files = {}
  for _, name in ipairs(core.embedded_names()) do
    if name:match "^meta/" then files[#files + 1] = name end
  end
  table.sort(files, function(a, b)
    local left, right = FIRST[a] or math.huge, FIRST[b] or math.huge
    if left ~= right then return left < right end
    return a < b
  end)
  loaded = { classes = {}, by_name = {}, aliases = {} }
  for _, name in ipairs(files) do parse(core.embedded_text(name), loaded) end
  return loaded
end

--- Parses one more text, for tests.
function M.parse(text)
  local into = { classes = {}, by_name = {}, aliases = {} }
  parse(text, into)
  return into
end

--- The class of a stub by its name with or without `msdbg.`, ignoring case; or nil.
function M.class(name)
  local all = M.load()
  if all.by_name[name] or all.by_name["msdbg." .. name] then return all.by_name[name] or all.by_name["msdbg." .. name] end
  name = name:lower():gsub("^msdbg%.", "")
  for _, class in ipairs(all.classes) do
    if class.name:lower():gsub("^msdbg%.", "") == name then return class end
  end
end

--- The class with the fields of an options table, for a parameter of a type like `msdbg.CheckOptions`, possibly among others; or
--- nil.
function M.options_of(param)
  local name = param.type:match "msdbg%.[%w_]+Options"
  return name and M.load().by_name[name]
end

--- Whether a class only describes an options table, which is described together with its function.
function M.is_options(class) return class.name:match "^msdbg%.%u[%w_]*Options$" ~= nil end

--- `session:step(n?) -> msdbg.RunResult`
function M.signature(member)
  local names = {}
  for i, param in ipairs(member.params) do names[i] = param.name .. (param.optional and "?" or "") end
  local arguments = #names > 0 and "(" .. table.concat(names, ", ") .. ")" or member.arguments
  local results = {}
  for i, result in ipairs(member.returns) do results[i] = result.type end
  local gives = #results > 0 and " -> " .. table.concat(results, ", ") or ""
  return member.owner .. member.separator .. member.name .. arguments .. gives
end

--- The first sentence of a text.
function M.brief(text)
  text = tostring(text)
  text = text:match "^(.-%.)%s" or text
  if #text <= LONGEST_BRIEF then return text end
  return text:sub(1, LONGEST_BRIEF):match "^(.*)%s" .. " ..."
end

--- A function or a field as lines of help.
---@param member table
---@return string
function M.member_text(member)
  if not member.params then
    return format("%s  %s%s%s", member.name, member.type, member.optional and "?" or "",
      member.text ~= "" and "\n  " .. member.text or "")
  end
  local lines = { M.signature(member) }
  if member.doc ~= "" then lines[#lines + 1] = "  " .. member.doc end
  for _, param in ipairs(member.params) do
    lines[#lines + 1] = (format("    %-12s %s  %s", param.name .. (param.optional and "?" or ""), param.type, param.text):gsub("%s+$", ""))
    local class, width = M.options_of(param), 0
    for _, field in ipairs(class and class.fields or {}) do width = math.max(width, #field.name + 1) end
    for _, field in ipairs(class and class.fields or {}) do
      lines[#lines + 1] = format("      %-" .. width .. "s  %s  %s", field.name .. (field.optional and "?" or ""), field.type, field.text)
    end
  end
  for _, result in ipairs(member.returns) do
    if result.name or result.text ~= "" then
      lines[#lines + 1] = (format("    -> %-9s %s  %s", result.name or "", result.type, result.text):gsub("%s+$", ""))
    end
  end
  for i, example in ipairs(member.examples) do lines[#lines + 1] = (i == 1 and "  e.g. " or "       ") .. example end
  return table.concat(lines, "\n")
end

--- A class as lines of help: its description, its fields, and the first sentence of each function.
---@param class table
---@return string
function M.class_text(class)
  local lines = { class.name .. (class.doc ~= "" and "  " .. class.doc or "") }
  if #class.fields > 0 then
    local width = 0
    for _, field in ipairs(class.fields) do width = math.max(width, #field.name) end
    for _, field in ipairs(class.fields) do
      lines[#lines + 1] = format("  .%-" .. width .. "s  %s%s", field.name, field.type, field.text ~= "" and "  " .. field.text or "")
    end
  end
  for _, member in ipairs(class.functions) do
    lines[#lines + 1] = format("  %s", M.signature(member))
    if member.doc ~= "" then lines[#lines + 1] = "      " .. M.brief(member.doc) end
  end
  return table.concat(lines, "\n")
end

--- Every function and field whose name or text contains all words of `words`, as { title, text }.
---@param matches fun(text: string): boolean
function M.search(matches)
  local found = {}
  for _, class in ipairs(M.load().classes) do
    for _, member in ipairs(class.functions) do
      if matches(member.name .. " " .. member.doc) then
        found[#found + 1] = { title = member.owner .. member.separator .. member.name, text = M.brief(member.doc) }
      end
    end
    for _, field in ipairs(class.fields) do
      if matches(field.name .. " " .. field.text) then
        found[#found + 1] = { title = class.name:gsub("^msdbg%.", "") .. "." .. field.name, text = field.text }
      end
    end
  end
  return found
end

--- Members that only the stubs or only the virtual machine have, as lines; empty if they agree. Modules (`msdbg.plot`) are compared
--- with the module tables, classes with their live tables.
---@return string[]
function M.disagreements()
  local all, wrong = M.load(), {}
  local function compare(class, have, where)
    for name in pairs(have) do
      -- A module that is a field of msdbg has its own class.
      if type(name) == "string" and not class.members[name] and not all.by_name[class.name .. "." .. name] then
        wrong[#wrong + 1] = format("%s.%s exists in %s, but has no stub in scripts/meta", class.name, name, where)
      end
    end
    for name in pairs(class.members) do
      if have[name] == nil then wrong[#wrong + 1] = format("%s.%s has a stub, but does not exist in %s", class.name, name, where) end
    end
  end
  for _, name in ipairs(core.classes()) do
    local methods, fields = core.members(name)
    local have = {}
    for _, space in ipairs { methods, fields } do
      for member in pairs(space) do have[member] = true end
    end
    local class = all.by_name[M.stub_name(name)]
    if class then compare(class, have, "class " .. name)
    elseif next(have) then
      wrong[#wrong + 1] = format("class '%s' has members, but no stub %s in scripts/meta", name, M.stub_name(name))
    end
  end
  for _, class in ipairs(all.classes) do
    if class.name == "msdbg" or class.name:match "^msdbg%.%l[%w_]*$" then
      local ok, module = pcall(require, class.name)
      if not ok then wrong[#wrong + 1] = format("%s has stubs, but require does not find it", class.name)
      elseif type(module) == "table" then compare(class, module, "module " .. class.name) end
    end
  end
  table.sort(wrong)
  return wrong
end

return M
