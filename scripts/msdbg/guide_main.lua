-- What `msdbg guide` does around the checklist: opens the dump, reads printed losses, prints, writes the report.
local core = require "msdbg.core"
local guide = require "msdbg.guide"
local json = require "msdbg.json"
local msdbg = require "msdbg"
local series = require "msdbg.series"

local io, pcall, print, tostring, type = io, pcall, print, tostring, type

local M = {}

local function plain(result, dump)
  return {
    dump = dump, findings = result.findings, unknowns = result.unknowns, steps = json.array(result.steps),
    entries = json.array(result.entries), verdict = guide.verdict(result),
  }
end

-- Calls a function with user input. Its errors are shown without a place in this file.
local function given(fn, path)
  local ok, value = pcall(fn, path)
  if ok then return value end
  core.raise(type(value) == "table" and value.code or "error", type(value) == "table" and value.message or tostring(value), true)
end

-- What the training printed says more about the whole run than the few steps that were dumped.
local function add_losses(result, own, reference, say)
  if not own then return end
  local entry = { chapter = "Printed losses", kind = "note", text = tostring(own):gsub("^<series ", ""):gsub(">$", "") }
  if reference then
    local compared = series.compare(own, reference)
    local close = compared.verdict == "close"
    entry.kind, entry.text, entry.next = close and "fine" or "finding", tostring(compared), not close and compared.next or nil
    if not close then result.findings = result.findings + 1 end
  end
  result.entries[#result.entries + 1] = entry
  say ""
  say(entry.chapter)
  say("  " .. entry.text:gsub("\n", "\n  "))
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
    say(("next: msdbg guide %s --report report.html   writes this as a page, with pictures"):format(options.dump))
    return
  end
  local page = msdbg.report(s, s:check { rules = "default" })
  local command = ("msdbg guide %s --report %s"):format(shell_word(options.dump), shell_word(path))
  page[core.page_form(path)](page, path, { guide = result.entries, rules = "the default rules", command = command })
  say("report: " .. path)
end

--- The exit status: 1 when anything was found.
---@param options { dump: string, ask: boolean, format: "table"|"json", loss?: string, reference_loss?: string, report?: string }
---@return integer
function M.main(options)
  local s = given(msdbg.open, options.dump)
  local own = options.loss and given(series.read, options.loss)
  local reference = options.reference_loss and given(series.read, options.reference_loss)
  local quiet = options.format == "json"
  local say = quiet and function() end or function(text) print(core.visible(text)) end
  local result = guide.run(s, { say = say, read = options.ask and io.read or nil })
  add_losses(result, own, reference, say)
  write_page(s, result, options, say)
  if quiet then print(json.encode(plain(result, options.dump), { indent = 2 })) end
  return result.findings > 0 and 1 or 0
end

return M
