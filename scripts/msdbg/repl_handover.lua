-- Commands that end a search: the report to share, and the guided checklist.
local core = require "msdbg.core"
local guide = require "msdbg.guide"
local registry = require "msdbg.repl_registry"

local command, need = registry.command, registry.need
local concat = table.concat

registry.group "the result"

command {
  name = "report", usage = "report FILE.html | FILE.md", summary = "one page of what was found, with pictures", complete = "file",
  details = "Tells of the last check, or of the origins of NaN and Inf when nothing was checked.",
  examples = { "report findings.html", "report findings.md" },
  run = function(session, rest)
    local s = need(session)
    if rest == "" then registry.usage(registry.find "report", "report: into which file?") end
    local known, form = pcall(core.page_form, rest)
    if not known then registry.usage(registry.find "report", "report: " .. form.message) end
    local report = core.report(s, s.last_result or core.origin(s, {}))
    return "report: " .. report[form](report, rest, { command = "report " .. rest })
  end,
}

command {
  name = "guide", usage = "guide", summary = "a guided checklist of the usual causes, answered from the data",
  details = "Asks nothing here: what only a person knows stays open. msdbg guide DUMP asks.",
  run = function(session)
    local lines = {}
    guide.run(need(session), { say = function(line) lines[#lines + 1] = line end })
    return concat(lines, "\n")
  end,
}
