---@meta
-- Rules: files of checks with parameters, advice and cases. Guide: docs/rules.md.

---@class msdbg
---@field rule fun(given: table): msdbg.Rule  makes a rule of a table; what rule files return
---@field rules msdbg.Rules

---A rule, with the fields that its file gave it.
---@class msdbg.Rule
---@field name string
---@field summary string
---@field tags string[]
---@field severity "info"|"warning"|"error"
---@field params table<string, table>
---@field file string?  nil for the catalogue

---@class msdbg.Rules
---@field budget number  seconds that one call of a rule's function may take
local rules = {}

---Adds a file or directory to the search path of this run; gives its rules.
---@param path string
---@return msdbg.Rule[]
function rules.load(path) end

---One rule by name or abbreviation; raises with the nearest names.
---@param name string
---@return msdbg.Rule
function rules.get(name) end

---The rules that are known, or that an expression chooses. None of their functions is called.
---@param options? { rules?: string, files?: string[], trust?: boolean }
---@return msdbg.Rule[]
function rules.list(options) end

---The rules of one file; or nil and why it cannot be read, with file and line.
---@param path string
---@return msdbg.Rule[]?
---@return string? why
function rules.read(path) end

---Rule files are read anew at the next use.
function rules.forget() end

---@class msdbg.Result
---@field from_rules boolean  rules were run, whose `watch` numbers are not those of the session's watchpoints
---@field rule_problems { rule: string, reason: string }[]  without a verdict: broken, no limit, nothing to look at; `*`: no such step
