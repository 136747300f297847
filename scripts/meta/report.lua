---@meta
-- Stubs of the page that a report can be written as. docs/report.md is the page for people.

---@class msdbg.Report
local report = {}

---@class msdbg.PageOptions
---@field max_hits? integer  findings to list
---@field tensors? integer  tensors to draw
---@field layers? integer  lines of trends in a group
---@field rules? string  what the rules that ran are called
---@field guide? { chapter: string, kind: string, text: string, next?: string }[]  entries of a guide, for a chapter of their own

---One self-contained page: verdict, origin with its ways, relation graph, pictures of the tensors, trends, findings with advice, source
---lines, coverage, commands. Of a dump, the half that the result does not hold (findings or origins) is looked up. Gives the path; without
---one, the page itself. The file is replaced as a whole or not at all.
---@param path? string  a file; it loads nothing and opens from disk
---@param options? msdbg.PageOptions
---@return string path
function report:html(path, options) end

---With a path: the same page as Markdown, pictures as lines of characters. Without one: the findings of a check as a comment for a
---merge request.
---e.g. msdbg.report(s, s:check()):markdown "findings.md"
---@param path? string
---@param options? msdbg.PageOptions
---@return string
function report:markdown(path, options) end
