-- What the command `guide` does around the checklist: reads printed losses, writes the report.
local core = require "msdbg.core"
local guide = require "msdbg.guide"
local msdbg = require "msdbg"
local series = require "msdbg.series"

local concat = table.concat
local io, ipairs, pcall, print, tostring, type = io, ipairs, pcall, print, tostring, type

local M = {}

-- Calls a function with user input. Its errors are shown without a place in this file.
local function given(fn, path)
  local ok, value = pcall(fn, path)
  if ok then return value end
  core.raise(type(value) == "table" and value.code or "error", type(value) == "table" and value.message or tostring(value), true)
end

-- The printed losses say more about the whole run than the few steps that were dumped.
local function add_losses(s, result, own, reference, say)
  if not own then return result end
  local entry = { chapter = "Printed losses", kind = "note", text = tostring(own):gsub("^<series ", ""):gsub(">$", "") }
  if reference then
    local compared = series.compare(own, reference)
    local close = compared.verdict == "close"
    entry.kind, entry.text, entry.next = close and "fine" or "finding", tostring(compared), not close and compared.next or nil
  end
  result.entries[#result.entries + 1] = entry
  say ""
  say(entry.chapter)
  say("  " .. entry.text:gsub("\n", "\n  "))
  return core.guide_answer(s, result)
end

--- A word as a POSIX shell takes it.
local function shell_word(text)
  return text:find "[^%w%._/,:@+-]" and "'" .. text:gsub("'", "'\\''") .. "'" or text
end

--- The page of the whole checklist. Without a file on the command line the user is asked for one, or the command is shown.
local function write_page(s, result, options, say)
  local path = options.report
  if not path and options.ask then
    say "Write a page to share, with pictures and these answers? File name, e.g. report.html; Enter: none"
    repeat
      path = (io.read() or ""):match "^%s*(.-)%s*$"
      local ok, problem = pcall(core.page_form, path)
      if path ~= "" and not ok then say("      " .. problem.message) end
    until ok or path == ""
    if path == "" then path = nil end
  end
  if not path then
    say(("next: %s --report report.html   writes this as a page, with pictures"):format(options.again))
    return
  end
  local page = msdbg.report(s, s:check { rules = "default" })
  local command = ("msdbg guide %s --report %s"):format(shell_word(options.dump), shell_word(path))
  page[core.page_form(path)](page, path, { guide = result.entries, rules = "the default rules", command = command })
  say("report: " .. path)
end

--- Words: again= (how this command is typed), dump=, ask=1 (a person answers at the terminal), format=json|jsonl, loss=,
--- reference_loss=, report=.
---@param s msdbg.Session
---@param ... string
---@return string text  what was not printed yet
---@return integer exit_status  1 if anything was found
function M.main(s, ...)
  local options = {}
  for _, word in ipairs { ... } do
    local key, value = word:match "^([%w_]+)=(.*)$"
    options[key] = value
  end
  local lines = {}
  local function say(text)
    if options.ask then print(core.visible(text)) elseif not options.format then lines[#lines + 1] = text end
  end
  local own = options.loss and given(series.read, options.loss)
  local reference = options.reference_loss and given(series.read, options.reference_loss)
  local result = add_losses(s, guide.run(s, { say = say, read = options.ask and io.read or nil }), own, reference, say)
  write_page(s, result, options, say)
  if #lines > 0 then lines[#lines + 1] = "" end
  return options.format and core.guide_json(s, result, options.format) or concat(lines, "\n"), result.findings > 0 and 1 or 0
end

return M
