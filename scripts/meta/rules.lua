---@meta
-- Rules: files of checks with parameters, advice and cases. Guide: docs/rules.md.

---@class msdbg
---@field rules msdbg.Rules

---A rule, with the fields from its file.
---@class msdbg.Rule
---@field name string
---@field summary string
---@field tags string[]
---@field severity "info"|"warning"|"error"
---@field params table<string, table>
---@field file string?  nil for conditions

---@class msdbg.Rules
---@field budget number  time limit in seconds for one call of a rule's function
local rules = {}

---Adds a file or directory to the search path of this run; returns its rules.
---@param path string
---@return msdbg.Rule[]
function rules.load(path) end

---One rule by name or abbreviation; an unknown name raises an error with the closest names.
---@param name string
---@return msdbg.Rule
function rules.get(name) end

---All known rules, or those that an expression chooses. Calls none of their functions.
---@param options? { rules?: string, files?: string[], trust?: boolean }
---@return msdbg.Rule[]
function rules.list(options) end

---The rules of one file, or nil and the reason why it cannot be read, with file and line.
---@param path string
---@return msdbg.Rule[]?
---@return string? why
function rules.read(path) end

---Makes msdbg read the rule files again at the next use.
function rules.forget() end

---@class msdbg.Result
---@field from_rules boolean  true: rules were run, and the `watch` numbers of hits are not watchpoints of the session
---@field rule_problems { rule: string, kind: string, reason: string }[]  rules without a verdict: broken, no limit, nothing to check; `*`: no such step
